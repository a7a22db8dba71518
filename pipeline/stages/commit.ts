import { type CommitOutcome, commitArtifact } from '../../registry/commit.js';
import type { BuildLock } from '../../registry/lock.js';
import { artifactFolder } from '../../registry/paths.js';
import { storeAccess } from '../../registry/staging.js';
import type { Context } from '../events.js';
import type { Sealed } from './seal.js';

/** A registered artifact. */
export interface Registered {
  readonly sealed: Sealed;
  readonly path: string;
  readonly outcome: CommitOutcome;
}

/** Stage 7: one rename makes the sealed folder the registered one. */
export async function commit(
  { sealed, lock }: { sealed: Sealed; lock: BuildLock },
  context: Context,
): Promise<Registered> {
  const { bucket, converted } = sealed.proven.placed.compiled;
  const { model, force } = converted.resolved.order;
  await lock.assertHeld();
  const key = { model, bucket };
  const outcome = await storeAccess(context.root, () =>
    commitArtifact(context.root, key, sealed.folder, { replace: force }),
  );
  return { sealed, outcome, path: artifactFolder(context.root, key) };
}
