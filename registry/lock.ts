import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import lockfile from 'proper-lockfile';
import { isSystemError } from '../schemas/errors.js';
import { makeFolder, recordText, writeFileDurably } from './durable.js';
import { StoreError } from './errors.js';
import { type ArtifactKey, lockPath, locksFolder } from './paths.js';

/** Who holds a lock, as told to those who wait. */
export interface LockHolder {
  readonly pid: number;
  readonly host: string;
  readonly since: string;
}

export interface LockOptions {
  readonly signal: AbortSignal;
  readonly now: () => Date;
  /** Called once when the lock is held by someone else. */
  readonly onWait?: (holder: LockHolder | undefined) => void;
  /** Longest wait in milliseconds. */
  readonly patience?: number;
}

/** A held lock. `assertHeld` throws StoreError LOCK_LOST once another process took it over. */
export interface BuildLock {
  assertHeld(): void;
  release(): Promise<void>;
}

const STALE_MS = 30_000;
const POLL_MS = 250;
const PATIENCE_MS = 60 * 60_000;

/**
 * Takes the lock that serialises builders of one target (protocol §3.5). It only saves work: the
 * store stays right without it, because one rename decides who registers.
 */
export async function lockTarget(root: string, key: ArtifactKey, options: LockOptions): Promise<BuildLock> {
  const path = lockPath(root, key);
  const holderPath = `${path}.holder.json`;
  let lost: Error | undefined;
  await makeFolder(locksFolder(root));
  const release = await acquire(path, holderPath, options, (error) => {
    lost = error;
  });
  const holder: LockHolder = { pid: process.pid, host: hostname(), since: options.now().toISOString() };
  await writeFileDurably(holderPath, recordText(holder));
  return {
    assertHeld: () => {
      if (lost)
        throw new StoreError('LOCK_LOST', 'another process took over this build while this one was stopped', {
          where: path,
          hint: 'run the command again',
          cause: lost,
        });
    },
    release: async () => {
      if (!lost) await release().catch(() => undefined);
    },
  };
}

async function acquire(
  path: string,
  holderPath: string,
  { signal, onWait, patience = PATIENCE_MS }: LockOptions,
  onCompromised: (error: Error) => void,
): Promise<() => Promise<void>> {
  const attempts = Math.ceil(patience / POLL_MS);
  for (let attempt = 0; ; attempt++) {
    signal.throwIfAborted();
    try {
      const lockfilePath = `${path}.d`;
      return await lockfile.lock(path, { lockfilePath, realpath: false, stale: STALE_MS, onCompromised });
    } catch (error) {
      if (!isSystemError(error, 'ELOCKED')) throw error;
      const holder = await readHolder(holderPath);
      if (attempt === 0) onWait?.(holder);
      if (attempt >= attempts) throw timedOut(path, holder);
    }
    await pause(POLL_MS, undefined, { signal });
  }
}

async function readHolder(path: string): Promise<LockHolder | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as LockHolder;
  } catch {
    return undefined;
  }
}

function timedOut(path: string, holder: LockHolder | undefined): StoreError {
  return new StoreError('LOCK_TIMEOUT', 'another build of this artifact does not end', {
    where: path,
    found: holder,
    hint: holder ? `look at process ${holder.pid} on ${holder.host}` : 'look for another running build',
  });
}
