import { type BuildLock, lockTarget } from '../registry/lock.js';
import type { ArtifactKey } from '../registry/paths.js';
import { storeAccess } from '../registry/staging.js';
import type { Context } from './events.js';

/** Takes the lock of one artifact; while it waits, the context hears who holds it. */
export async function lockArtifact(key: ArtifactKey, { root, signal, now, emit }: Context): Promise<BuildLock> {
  const what = `${key.model.name} L${key.bucket}`;
  const onWait = (holder: { pid: number; host: string; since: string } | undefined): void =>
    emit({
      kind: 'waiting',
      what,
      holder: holder ? `process ${holder.pid} on ${holder.host} since ${holder.since}` : 'another process',
    });
  return storeAccess(root, () => lockTarget(root, key, { signal, now, onWait }));
}
