import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isSystemError } from '../schemas/errors.js';

/** Flushes a file's or folder's content to the disk. Folders that can't be synced on this system are left. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } catch (error) {
    if (!isSystemError(error, 'EINVAL', 'ENOTSUP', 'EBADF', 'EPERM')) throw error;
  } finally {
    await handle.close();
  }
}

/** Flushes every file and folder of a tree, files first. */
export async function syncTree(root: string, sync: (path: string) => Promise<void> = syncPath): Promise<void> {
  for (const entry of await readdir(root, { withFileTypes: true })) {
    const path = join(root, entry.name);
    if (entry.isDirectory()) await syncTree(path, sync);
    else await sync(path);
  }
  await sync(root);
}

/** A name beside the path that nobody else uses: hidden, with this process's number. */
export const temporarySibling = (path: string): string =>
  join(dirname(path), `.${basename(path)}.${process.pid}-${randomBytes(4).toString('hex')}`);

/** Makes a folder and its parents, and flushes the parents that are new. */
export async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  for (let folder = path; folder.length >= first.length; folder = dirname(folder)) await syncPath(dirname(folder));
}

/**
 * Writes a file so that a reader sees the old content or the new one, whole, also after a power loss:
 * a temporary sibling, flush, rename, flush of the folder. On failure the sibling is removed.
 */
export async function writeFileDurably(path: string, content: string): Promise<void> {
  const temporary = temporarySibling(path);
  try {
    await writeFile(temporary, content, { flag: 'wx', mode: 0o644 });
    await syncPath(temporary);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncPath(dirname(path));
}

/** A record's text as it stands on disk: indent 1, a newline at the end. Non-finite numbers throw. */
export function recordText(record: unknown): string {
  const text = JSON.stringify(
    record,
    (key, value: unknown) => {
      if (typeof value === 'number' && !Number.isFinite(value)) throw new RangeError(`${key} is ${value}`);
      return value;
    },
    1,
  );
  return `${text}\n`;
}
