import { randomBytes } from 'node:crypto';
import fs, { type BigIntStats } from 'node:fs';
import { rename, rmdir, stat } from 'node:fs/promises';
import { isSystemError } from '../schemas/errors.js';

/** Tells one lock folder from another at the same path; `born` is its birth in nanoseconds, 0 where that is not kept. */
export interface LockIdentity {
  readonly ino: string;
  readonly born: string;
}

const identityOf = ({ ino, birthtimeNs }: BigIntStats): LockIdentity => ({ ino: `${ino}`, born: `${birthtimeNs}` });

export const isSameLock = (a: LockIdentity | undefined, b: LockIdentity | undefined): boolean =>
  a !== undefined && b !== undefined && a.ino === b.ino && a.born === b.born;

/** The lock folder that stands at a path; undefined when none does. */
export async function lockIdentity(path: string): Promise<LockIdentity | undefined> {
  try {
    return identityOf(await stat(path, { bigint: true }));
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

/**
 * Removes a lock folder that `isIt` recognises, and no other: it is claimed by a rename and looked at there. One that
 * was taken away by mistake is put back (fault R03). False when it was not there or was another one.
 */
export async function breakLock(path: string, isIt: (found: BigIntStats) => boolean): Promise<boolean> {
  const claimed = `${path}.broken-${process.pid}-${randomBytes(4).toString('hex')}`;
  try {
    if (!isIt(await stat(path, { bigint: true }))) return false;
    await rename(path, claimed);
    if (isIt(await stat(claimed, { bigint: true }))) {
      await rmdir(claimed);
      return true;
    }
    await rename(claimed, path);
    return false;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return false;
    throw error;
  }
}

/**
 * The file system as proper-lockfile sees it. Left to itself it removes whatever lock stands at the path, be it one
 * that another process has taken over or made anew meanwhile; here it removes the one it has looked at, or its own.
 */
export class LockFolderSystem {
  #seen: BigIntStats | undefined;
  #own: LockIdentity | undefined;

  /** The lock that was taken through this object. */
  get own(): LockIdentity | undefined {
    return this.#own;
  }

  readonly utimes = fs.utimes;
  readonly realpath = fs.realpath;

  readonly mkdir = (path: string, done: (error: Error | null) => void): void => {
    fs.mkdir(path, (error) => {
      if (error) return done(error);
      fs.stat(path, { bigint: true }, (problem, found) => {
        if (!problem) this.#own = identityOf(found);
        done(null);
      });
    });
  };

  readonly stat = (path: string, done: (error: Error | null, found?: fs.Stats) => void): void => {
    fs.stat(path, { bigint: true }, (error, found) => {
      this.#seen = error ? undefined : found;
      fs.stat(path, done);
    });
  };

  readonly rmdir = (path: string, done: (error: Error | null) => void): void => {
    const [own, seen] = [this.#own, this.#seen];
    const isIt = (found: BigIntStats): boolean => {
      if (own) return isSameLock(own, identityOf(found));
      return seen?.ino === found.ino && seen.birthtimeNs === found.birthtimeNs && seen.mtimeNs === found.mtimeNs;
    };
    breakLock(path, isIt).then(
      () => done(null),
      (error: Error) => done(error),
    );
  };

  readonly rmdirSync = (path: string): void => {
    if (isSameLock(this.#own, identityOf(fs.statSync(path, { bigint: true })))) fs.rmdirSync(path);
  };
}
