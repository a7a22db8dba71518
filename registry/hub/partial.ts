import { randomBytes } from 'node:crypto';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isSystemError } from '../../schemas/errors.js';
import { processState } from '../processes.js';

/** Fewer bytes are not worth going on from. */
export const WORTH_KEEPING = 1 << 20;
/** A download that did not write for so long is not running, wherever it ran. */
const QUIET_MS = 60_000;
/** In the place of a process id: nobody writes there any more. */
const NOBODY = 0;

const nameOf = (target: string, pid: number): string => `${target}.${pid}-${randomBytes(4).toString('hex')}.incomplete`;

/** Name of a download's temporary file: unique, so that two processes never write into one. */
export const temporaryName = (target: string): string => nameOf(target, process.pid);
export const TEMPORARY_NAME = /\.[0-9]+-[0-9a-f]{8}\.incomplete$/;

/** Leaves a temporary file for a later download of the same content. */
export async function giveUp(temporary: string, target: string): Promise<void> {
  await rename(temporary, nameOf(target, NOBODY)).catch(() => rm(temporary, { force: true }));
}

/** What ended downloads of the same target left. They are read, never written: the one who wrote may still run. */
export interface Partial {
  readonly path: string;
  readonly bytes: number;
  /** True when certainly nobody writes there any more. */
  readonly isNobodys: boolean;
}

/** Beginnings of the target, the largest first. */
export async function findPartials(target: string, now: number): Promise<Partial[]> {
  const prefix = `${basename(target)}.`;
  const found: Partial[] = [];
  for (const name of await readdir(dirname(target))) {
    if (!name.startsWith(prefix) || !TEMPORARY_NAME.test(name)) continue;
    const pid = Number(name.slice(prefix.length).split('-')[0]);
    const path = join(dirname(target), name);
    const status = await stat(path).catch((error: unknown) => {
      if (!isSystemError(error)) throw error;
    });
    if (!status?.isFile() || status.size < WORTH_KEEPING) continue;
    const isDead = pid === NOBODY || processState(pid) === 'dead';
    if (isDead) found.push({ path, bytes: status.size, isNobodys: pid === NOBODY || now - status.mtimeMs > QUIET_MS });
  }
  return found.sort((a, b) => b.bytes - a.bytes);
}
