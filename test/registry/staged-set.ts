import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StagedArtifact } from '../../registry/commit-set.js';
import { locateArtifact } from '../../registry/locate.js';
import { artifactFolder, COMPILED } from '../../registry/paths.js';
import { readArtifact, verifyTree } from '../../registry/read.js';
import { FILES, KEY, writeArtifact } from './artifact.js';

/** Three buckets of one model. */
export const keys = [64, 96, 128].map((bucket) => ({ ...KEY, bucket }));

/** Writes an artifact that says `text`. */
export const write = (path: string, bucket: number, text: string) =>
  writeArtifact(path, { ...FILES, 'model.mil': text }, ({ artifact }) => {
    artifact.length = bucket;
  });

/** Staged artifacts of the three buckets; those that are registered before are to be replaced. */
export async function stage(root: string, registered: readonly number[] = []): Promise<StagedArtifact[]> {
  const all: StagedArtifact[] = [];
  for (const key of keys) {
    const staged = join(root, 'artifacts/.staging/fetch-1', `L${key.bucket}`);
    await write(staged, key.bucket, 'new');
    const replace = registered.includes(key.bucket);
    if (replace) await write(artifactFolder(root, key), key.bucket, 'old');
    all.push({ key, folder: staged, replace });
  }
  return all;
}

/** What each bucket says, undefined where there is none; each is whole. */
export async function state(root: string): Promise<(string | undefined)[]> {
  const found: (string | undefined)[] = [];
  for (const key of keys) {
    const at = await locateArtifact(root, key);
    if (at !== undefined) await verifyTree(await readArtifact(key, at));
    found.push(at && (await readFile(join(at, COMPILED, 'model.mil'), 'utf8')));
  }
  return found;
}
