import { constants } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isSystemError } from '../schemas/errors.js';
import { ArtifactIntegrityError } from './errors.js';
import { COMPILED, MANIFEST } from './paths.js';
import { type OpenedArtifact, readArtifact, verifyTree } from './read.js';
import { CANNOT_LINK } from './sharing.js';
import { type StoreSteps, storeSteps } from './steps.js';
import { listTree, type TreeDigest } from './tree.js';

/**
 * Stages a registered artifact once more, under another manifest, so that a replacement can put it in its own place
 * (protocol §3.8). The files are hard links, copies where the file system can't link; the registered folder is not
 * changed. Throws Artifact*Error: the manifest is not one for these bytes, or they changed since they were digested.
 *
 * @param digest What the registered bytes were when they were proven
 * @param staged The staged artifact folder, which must not exist
 */
export async function restage(
  { key, model }: OpenedArtifact,
  digest: TreeDigest,
  manifest: string,
  staged: string,
  changed: Partial<StoreSteps> = {},
): Promise<void> {
  const steps = storeSteps(changed);
  const target = join(staged, COMPILED);
  await mkdir(target, { recursive: true });
  for (const { path, folder } of await listTree(model)) {
    if (folder) await mkdir(join(target, path));
    else await linkOrCopy(join(model, path), join(target, path), steps);
  }
  await steps.write(join(staged, MANIFEST), manifest);
  const { v2 } = await verifyTree(await readArtifact(key, staged));
  if (v2 === digest.v2) return;
  throw new ArtifactIntegrityError('TREE_MISMATCH', 'the model changed while its gates ran', {
    where: model,
    expected: digest.v2,
    found: v2,
  });
}

async function linkOrCopy(from: string, to: string, steps: StoreSteps): Promise<void> {
  try {
    await steps.link(from, to);
  } catch (error) {
    if (!isSystemError(error, ...CANNOT_LINK)) throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  }
}
