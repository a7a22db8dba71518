import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Confirm } from '../../registry/commit.js';
import { recordText } from '../../registry/durable.js';
import { installArtifact, type Prove } from '../../registry/install.js';
import { locateArtifact } from '../../registry/locate.js';
import { MANIFEST } from '../../registry/paths.js';
import { storeAccess } from '../../registry/staging.js';
import type { Context } from '../events.js';
import type { Compiled } from './compile.js';

/** The same model where its gates run: at the registered path, or in staging when it is to replace another one. */
export const movedTo = (compiled: Compiled, model: string): Compiled => ({
  ...compiled,
  model,
  folder: dirname(model),
});

/** What the gates do where readers will load the model, and once more where it took the place of another one. */
export interface Gates {
  readonly prove: Prove;
  readonly confirm: Confirm;
}

/**
 * Stages 4 to 7 for a toolchain whose verdict holds for one path: `prove` runs the gates where readers will load the
 * model, its manifest withheld until they have passed (protocol §3.7, fault B03). False when another builder's artifact
 * stands there already.
 */
export async function install(
  { compiled, prove, confirm }: Gates & { compiled: Compiled },
  { root, now }: Context,
): Promise<boolean> {
  const { bucket, folder, converted } = compiled;
  const { model, force } = converted.resolved.order;
  const key = { model, bucket };
  await writeFile(join(folder, MANIFEST), recordText({ status: 'pending' }), { flag: 'wx', mode: 0o644 });
  const replace = force && (await locateArtifact(root, key)) !== undefined;
  const outcome = await storeAccess(root, () => installArtifact(root, key, folder, prove, { replace, now, confirm }));
  return outcome === 'registered';
}
