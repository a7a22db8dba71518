import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import lockfile from 'proper-lockfile';
import { isSystemError } from '../schemas/errors.js';
import { makeFolder, recordText, writeFileDurably } from './durable.js';
import { StoreError } from './errors.js';
import { breakLock, isSameLock, LockFolderSystem, type LockIdentity, lockIdentity } from './lock-folder.js';
import { readMarker } from './markers.js';
import { type ArtifactKey, lockPath, locksFolder } from './paths.js';
import { PEER_LOCK_SYSTEM, type PeerLock, type PeerLockSystem, peerHolder, takePeerLock } from './peer-lock.js';
import { processState } from './processes.js';

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
  readonly peer?: PeerLockSystem;
}

/** A held lock. `assertHeld` throws StoreError LOCK_LOST once another process took it over. */
export interface BuildLock {
  assertHeld(): Promise<void>;
  release(): Promise<void>;
}

/** A holder's record; `lock` is the folder it is about. */
interface HolderRecord extends LockHolder {
  readonly token: string;
  readonly lock: LockIdentity | undefined;
}

const STALE_MS = 30_000;
const POLL_MS = 250;
const PATIENCE_MS = 60 * 60_000;

/**
 * Takes the lock that serialises builders of one target (protocol §3.5), and the Python runtime's where that can be
 * had. It only saves work: the store stays right without it, because one rename decides who registers.
 * Throws StoreError LOCK_TIMEOUT, which names the holder.
 */
export async function lockTarget(root: string, key: ArtifactKey, options: LockOptions): Promise<BuildLock> {
  const path = lockPath(root, key);
  await makeFolder(locksFolder(root));
  const wait = new Wait(path, options);
  const own = await takeOwn(path, wait, options);
  try {
    const peer = await takePeer(path, wait, options);
    return {
      assertHeld: own.assertHeld,
      release: async () => {
        if (typeof peer === 'object') await peer.release();
        await own.release();
      },
    };
  } catch (error) {
    await own.release();
    throw error;
  }
}

/** Polls until something is free, tells once who holds it, and gives up after the patience. */
class Wait {
  readonly #path: string;
  readonly #options: LockOptions;
  #polls = 0;

  constructor(path: string, options: LockOptions) {
    this.#path = path;
    this.#options = options;
  }

  /** Holder is called only when it is needed. */
  async pause(holder: () => LockHolder | undefined): Promise<void> {
    const { signal, onWait, patience = PATIENCE_MS } = this.#options;
    if (this.#polls === 0) onWait?.(holder());
    if (this.#polls * POLL_MS >= patience) throw timedOut(this.#path, holder());
    this.#polls++;
    await pause(POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

async function takeOwn(path: string, wait: Wait, { signal, now }: LockOptions): Promise<BuildLock> {
  const folder = `${path}.d`;
  const holderPath = `${path}.holder.json`;
  const system = new LockFolderSystem();
  let lost: Error | undefined;
  const onCompromised = (error: Error): void => {
    lost = error;
  };
  for (;;) {
    signal.throwIfAborted();
    try {
      const settings = { lockfilePath: folder, realpath: false, stale: STALE_MS, onCompromised, fs: system };
      const release = await lockfile.lock(path, settings);
      const giveBack = (): Promise<void> => release().catch(() => undefined);
      const holder = { pid: process.pid, host: hostname(), since: now().toISOString(), ...tokenFor(system) };
      await writeFileDurably(holderPath, recordText(holder)).catch(async (error: unknown) => {
        await giveBack();
        throw error;
      });
      return {
        assertHeld: async () => {
          if (lost || !(await isOurs(folder, holderPath, holder))) throw lockLost(path, lost);
        },
        release: giveBack,
      };
    } catch (error) {
      if (!isSystemError(error, 'ELOCKED')) throw error;
      if (!(await breakDead(folder, holderPath))) await wait.pause(() => readHolder(holderPath));
    }
  }
}

const tokenFor = ({ own }: LockFolderSystem) => ({ token: randomBytes(8).toString('hex'), lock: own });

/** A record of ours, and the folder that we made. A record that can't be read says nothing. */
async function isOurs(folder: string, holderPath: string, { token, lock }: HolderRecord): Promise<boolean> {
  const found = readRecord(holderPath)?.token;
  return isSameLock(await lockIdentity(folder), lock) && (found === undefined || found === token);
}

/**
 * Removes the lock of a holder that died on this host. The record must be about the very folder that stands there: a
 * new holder makes the folder first and writes its record after.
 */
async function breakDead(folder: string, holderPath: string): Promise<boolean> {
  const record = readRecord(holderPath);
  if (!record?.lock || record.lock.born === '0' || processState(record.pid, record.host) !== 'dead') return false;
  return breakLock(folder, (found) => isSameLock(record.lock, { ino: `${found.ino}`, born: `${found.birthtimeNs}` }));
}

async function takePeer(
  path: string,
  wait: Wait,
  { signal, now, peer = PEER_LOCK_SYSTEM }: LockOptions,
): Promise<PeerLock> {
  for (;;) {
    signal.throwIfAborted();
    const taken = await takePeerLock(path, now().toISOString(), peer);
    if (taken !== 'held') return taken;
    await wait.pause(() => {
      const { pid, since } = peerHolder(path) ?? {};
      return typeof pid === 'number' ? { pid, host: hostname(), since: String(since) } : undefined;
    });
  }
}

function readRecord(path: string): HolderRecord | undefined {
  const record = readMarker(path);
  return typeof record?.pid === 'number' ? (record as unknown as HolderRecord) : undefined;
}

function readHolder(path: string): LockHolder | undefined {
  const record = readRecord(path);
  return record && { pid: record.pid, host: String(record.host), since: String(record.since) };
}

function lockLost(path: string, cause: Error | undefined): StoreError {
  return new StoreError('LOCK_LOST', 'another process took over this build while this one was stopped', {
    where: path,
    found: readHolder(`${path}.holder.json`),
    hint: 'run the command again',
    cause,
  });
}

function timedOut(path: string, holder: LockHolder | undefined): StoreError {
  return new StoreError('LOCK_TIMEOUT', 'another build of this artifact does not end', {
    where: path,
    found: holder,
    hint: holder
      ? `look at process ${holder.pid} on ${holder.host}, which holds it since ${holder.since}`
      : 'look for another running build',
  });
}
