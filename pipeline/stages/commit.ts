import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CommitOutcome, commitArtifact } from '../../registry/commit.js';
import type { BuildLock } from '../../registry/lock.js';
import { artifactFolder, MANIFEST } from '../../registry/paths.js';
import { storeAccess } from '../../registry/staging.js';
import type { Context } from '../events.js';
import type { Sealed } from './seal.js';

/** A registered artifact. */
export interface Registered {
  readonly sealed: Sealed;
  readonly path: string;
  readonly outcome: CommitOutcome;
}

/** Stage 7: the manifest joins its model, and one rename makes the sealed folder the registered one. */
export async function commit(
  { sealed, lock }: { sealed: Sealed; lock: BuildLock },
  context: Context,
): Promise<Registered> {
  const { bucket, converted } = sealed.proven.placed.compiled;
  const { model, force } = converted.resolved.order;
  await lock.assertHeld();
  const key = { model, bucket };
  const outcome = await storeAccess(context.root, async () => {
    await writeFile(join(sealed.folder, MANIFEST), sealed.text, { flag: 'wx', mode: 0o644 });
    return commitArtifact(context.root, key, sealed.folder, { replace: force });
  });
  return { sealed, outcome, path: artifactFolder(context.root, key) };
}
