import { lstat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isSystemError } from '../schemas/errors.js';
import { StoreError } from './errors.js';
import type { StoreSteps } from './steps.js';

/**
 * Renames a folder to a path that must be free, and flushes the folder it stands in; when that fails, it is moved back.
 * rename(2) refuses a target folder that holds anything and takes an empty one, which no artifact is (fault R11).
 */
export async function moveIfFree(from: string, to: string, steps: StoreSteps): Promise<boolean> {
  const { dev, ino } = await lstat(from);
  try {
    await steps.rename(from, to);
  } catch (error) {
    if (isSystemError(error, 'ENOTEMPTY', 'EEXIST')) return false;
    if (isSystemError(error, 'ENOTDIR')) throw occupied(to, error);
    throw error;
  }
  try {
    await steps.sync(dirname(to));
    return true;
  } catch (error) {
    const there = await lstat(to).catch(() => undefined);
    if (there?.dev === dev && there.ino === ino) await steps.rename(to, from).catch(() => undefined);
    throw error;
  }
}

export function occupied(target: string, cause?: unknown): StoreError {
  return new StoreError('TARGET_OCCUPIED', 'the registered path is taken by something else', {
    where: target,
    hint: 'move it away, then run the command again',
    cause,
  });
}
