import { randomBytes } from 'node:crypto';
import { access, constants, mkdir, readdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isSystemError } from '../schemas/errors.js';
import { makeFolder, recordText, writeFileDurably } from './durable.js';
import { StoreError } from './errors.js';
import { readMarker } from './markers.js';
import { type ArtifactKey, artifactsFolder, BUILDING, stagingFolder } from './paths.js';

/** A private folder on the store's file system in which one build works (protocol §3.1). */
export interface Staging {
  readonly path: string;
  /** Temporary files of the tools that the build starts. */
  readonly temp: string;
  /** Marks the folder as given up, so that the next build or prune may take it. */
  abandon(stage: string): Promise<void>;
  remove(): Promise<void>;
}

/** What a staging folder is for: a build of one model's buckets, or something whose archives will tell. */
export type StagingPurpose = ArtifactKey | 'import' | 'fetch' | 'publish';

/** Opens a staging folder. Throws StoreError ROOT_UNWRITABLE or DISK_FULL when the root takes no files. */
export async function openStaging(root: string, purpose: StagingPurpose, now: Date): Promise<Staging> {
  const label = typeof purpose === 'string' ? purpose : `${purpose.model.name}-L${purpose.bucket}`;
  const path = join(stagingFolder(root), `${label}-${randomBytes(6).toString('hex')}`);
  const temp = join(path, 'tmp');
  const marker = { pid: process.pid, host: hostname(), since: now.toISOString() };
  const mark = (extra: object): Promise<void> =>
    writeFileDurably(join(path, BUILDING), recordText({ ...marker, ...extra }));
  await storeAccess(root, async () => {
    await makeFolder(stagingFolder(root));
    await sweepAbandoned(root);
    try {
      await mkdir(path);
      await mark({});
      await mkdir(temp);
    } catch (error) {
      await rm(path, { recursive: true, force: true });
      throw error;
    }
  });
  return {
    path,
    temp,
    abandon: (stage) => mark({ abandoned: true, stage }),
    remove: () => rm(path, { recursive: true, force: true }),
  };
}

/** Runs a step that writes below the root, and turns the system's refusals into errors that say what to do. */
export async function storeAccess<T>(root: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (isSystemError(error, 'ENOSPC', 'EDQUOT'))
      throw new StoreError('DISK_FULL', `no space left below ${root}`, {
        where: error.path ?? root,
        hint: 'free space there, or set LAYA_APPLE_CACHE to a folder on another volume',
        cause: error,
      });
    if (isSystemError(error, 'EXDEV'))
      throw new StoreError('CROSS_DEVICE', 'a folder of the store is on another volume, and no rename leads there', {
        where: error.path ?? root,
        hint: `keep all of ${artifactsFolder(root)} on one volume`,
        cause: error,
      });
    if (isSystemError(error, 'EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST'))
      throw new StoreError('ROOT_UNWRITABLE', `the artifact root can't be written (${error.code})`, {
        where: error.path ?? root,
        hint: 'make it writable, or set LAYA_APPLE_CACHE to another folder',
        cause: error,
      });
    throw error;
  }
}

/** Fails early when the root exists and can't be written. Creates nothing. */
export async function checkWritable(root: string): Promise<void> {
  for (const folder of [root, artifactsFolder(root), stagingFolder(root)])
    await storeAccess(root, async () => {
      await access(folder, constants.W_OK | constants.X_OK).catch((error: unknown) => {
        if (!isSystemError(error, 'ENOENT')) throw error;
      });
    });
}

/** Removes staging folders that their build marked as given up. Others are prune's to judge. */
async function sweepAbandoned(root: string): Promise<void> {
  for (const name of await readdir(stagingFolder(root))) {
    const path = join(stagingFolder(root), name);
    const marker = readMarker(join(path, BUILDING));
    if (marker?.abandoned === true) await rm(path, { recursive: true, force: true });
  }
}
