import { openStaging, type Staging, type StagingPurpose, storeAccess } from '../registry/staging.js';
import { InterruptedError } from './errors.js';
import type { Context } from './events.js';
import type { Stopwatch } from './stopwatch.js';

/** Works in a staging folder that is removed afterwards; one whose work was stopped is marked for the next command. */
export async function inStaging<T>(
  purpose: StagingPurpose,
  watch: Stopwatch,
  { root, now }: Context,
  work: (staging: Staging) => Promise<T>,
): Promise<T> {
  const staging = await openStaging(root, purpose, now());
  try {
    const result = await storeAccess(root, () => work(staging));
    await staging.remove();
    return result;
  } catch (error) {
    if (error instanceof InterruptedError) await staging.abandon(watch.running ?? 'start');
    else await staging.remove();
    throw error;
  }
}
