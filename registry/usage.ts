import { type BigIntStats, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isSystemError } from '../schemas/errors.js';

/** One name of a file's bytes. */
export interface FileUse {
  /** Device and inode: equal for names that share their bytes. */
  readonly id: string;
  readonly bytes: number;
  /** Names the file system knows for these bytes. */
  readonly links: number;
}

/** Every file below a path, or the file itself; links are counted as themselves, what can't be read not at all. */
export function filesBelow(path: string): FileUse[] {
  const found: FileUse[] = [];
  const pending = [path];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    try {
      const stat = lstatSync(next, { bigint: true });
      if (!stat.isDirectory()) found.push(useOf(stat));
      else for (const name of readdirSync(next)) pending.push(join(next, name));
    } catch (error) {
      if (!isSystemError(error)) throw error;
    }
  }
  return found;
}

const useOf = ({ dev, ino, size, nlink }: BigIntStats): FileUse => ({
  id: `${dev}:${ino}`,
  bytes: Number(size),
  links: Number(nlink),
});

/** Bytes as if nothing were shared. */
export const totalBytes = (files: readonly FileUse[]): number => files.reduce((sum, { bytes }) => sum + bytes, 0);

/** Bytes with shared ones counted once. */
export function uniqueBytes(files: readonly FileUse[]): number {
  return totalBytes([...new Map(files.map((file) => [file.id, file])).values()]);
}

/** Bytes that the disk has free once all of these names are removed: those that no other name shares. */
export function freedBytes(files: readonly FileUse[]): number {
  const names = new Map<string, number>();
  for (const { id } of files) names.set(id, (names.get(id) ?? 0) + 1);
  return uniqueBytes(files.filter(({ id, links }) => names.get(id)! >= links));
}
