import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { isSystemError } from '../schemas/errors.js';
import { MANIFEST } from './paths.js';
import type { StoreSteps } from './steps.js';

/** Claims a folder or file for removal by one rename; gives its new path (protocol §9.2, step 1). */
export async function claim(path: string, steps: StoreSteps): Promise<string> {
  const claimed = `${path}.pruning-${process.pid}-${randomBytes(4).toString('hex')}`;
  await steps.rename(path, claimed);
  return claimed;
}

/** Removes what was claimed; its manifest first, so that what a kill leaves is no artifact (protocol §9.2, step 3). */
export async function removeClaimed(claimed: string, steps: StoreSteps): Promise<void> {
  await steps.unlink(join(claimed, MANIFEST)).catch((error: unknown) => {
    if (!isSystemError(error, 'ENOENT', 'ENOTDIR')) throw error;
  });
  await steps.remove(claimed);
}
