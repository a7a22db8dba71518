import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { isSystemError } from '../schemas/errors.js';
import { readMarker } from './markers.js';

/** open(2) of macOS takes the lock of flock(2) with this flag; Node has no name for it. */
const O_EXLOCK = 0x20;

/** The parts of the system that taking the lock needs. */
export interface PeerLockSystem {
  readonly platform: NodeJS.Platform;
  readonly open: (path: string, flags: number, mode: number) => Promise<FileHandle>;
}

export const PEER_LOCK_SYSTEM: PeerLockSystem = { platform: process.platform, open };

/** `held`: the Python runtime has it. `unavailable`: this system can't take it, and renames alone decide. */
export type PeerLock = { release(): Promise<void> } | 'held' | 'unavailable';

/** Tries to take the lock file of the Python runtime, and writes into it who has it (protocol §3.5). */
export async function takePeerLock(
  path: string,
  since: string,
  { platform, open: openFile }: PeerLockSystem,
): Promise<PeerLock> {
  if (platform !== 'darwin') return 'unavailable';
  try {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | O_EXLOCK;
    const file = await openFile(path, flags, 0o644);
    await file.truncate(0);
    await file.write(JSON.stringify({ pid: process.pid, since }), 0);
    return { release: () => file.close() };
  } catch (error) {
    if (isSystemError(error, 'EAGAIN', 'EWOULDBLOCK')) return 'held';
    if (isSystemError(error, 'ENOTSUP', 'EOPNOTSUPP', 'EINVAL')) return 'unavailable';
    throw error;
  }
}

/** Who wrote itself into the Python runtime's lock file last. */
export function peerHolder(path: string): { pid: unknown; since: unknown } | undefined {
  const marker = readMarker(path);
  return marker?.pid === undefined ? undefined : { pid: marker.pid, since: marker.since };
}
