import { lstat, readdir, readlink, rename, rm, rmdir, stat, symlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeFolder, syncPath } from '../durable.js';
import { type ContentDigest, digestOfName, fileHasDigests } from './digest.js';
import { blobPath, type HubPlace, linkTarget, pointerPath } from './layout.js';
import { TEMPORARY_NAME, temporaryName } from './partial.js';

/** What the cache has under a file's name: the right content, none, another content, or one that nothing tells about. */
export type CachedState = 'right' | 'missing' | 'wrong' | 'unverifiable';

const DAY_MS = 86_400_000;

/**
 * Checks a file of the snapshot by its content, whatever its name or size say. Without `digests` its link's name tells
 * what the content should be. Nothing is written.
 */
export async function checkCached(
  place: HubPlace,
  file: string,
  digests: readonly ContentDigest[] | undefined,
): Promise<CachedState> {
  const path = pointerPath(place, file);
  const status = await stat(path).catch(() => undefined);
  if (!status) return 'missing';
  const expected = digests ?? (await linkDigests(path));
  if (!expected) return 'unverifiable';
  return status.isFile() && (await fileHasDigests(path, expected)) ? 'right' : 'wrong';
}

async function linkDigests(path: string): Promise<ContentDigest[] | undefined> {
  const target = await readlink(path).catch(() => '');
  const digest = digestOfName(basename(target));
  return digest && [digest];
}

/** True when the cache holds the content with these digests under this name. */
export async function hasContent(place: HubPlace, name: string, digests: readonly ContentDigest[]): Promise<boolean> {
  const path = blobPath(place, name);
  const status = await stat(path).catch(() => undefined);
  return status?.isFile() === true && (await fileHasDigests(path, digests));
}

/** Makes the snapshot's link to a content, in one step where a file or link stands already. */
export async function linkContent(place: HubPlace, file: string, name: string): Promise<void> {
  const path = pointerPath(place, file);
  await makeFolder(dirname(path));
  await removeEmptyFolder(path);
  const temporary = temporaryName(path);
  try {
    await symlink(linkTarget(place, file, name), temporary);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncPath(dirname(path));
}

/** An empty folder in a file's place goes; one with content is not ours to delete and makes the system complain. */
export async function removeEmptyFolder(path: string): Promise<void> {
  const status = await lstat(path).catch(() => undefined);
  if (status?.isDirectory()) await rmdir(path);
}

/** Removes what killed downloads of ours left in a folder a day ago or longer. */
export async function sweepAbandoned(folder: string, now: number): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!TEMPORARY_NAME.test(name)) continue;
    const status = await lstat(join(folder, name)).catch(() => undefined);
    if (status && now - status.mtimeMs > DAY_MS) await rm(join(folder, name), { force: true });
  }
}
