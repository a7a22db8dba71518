import { readdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isSystemError, LayaError } from '../schemas/errors.js';
import type { CommitOptions, CommitOutcome } from './commit.js';
import { DENSE_FOLDER, denseFolder, keptDense, readDense, verifyDense } from './dense.js';
import { makeFolder, syncTree } from './durable.js';
import { ArtifactIntegrityError } from './errors.js';
import { replaceArtifact } from './exchange.js';
import type { ModelSpec } from './models.js';
import { moveIfFree } from './move.js';
import { MANIFEST } from './paths.js';
import { sha256File } from './sha256.js';
import { storeSteps } from './steps.js';

/**
 * Publishes a staged any-length graph (a folder with exactly manifest.json and model/) by the same renames as an
 * artifact (protocol §3.2, §3.3). Without `replace` a whole registered one is left as it is.
 */
export async function commitDense(
  root: string,
  model: ModelSpec,
  staged: string,
  options: CommitOptions,
): Promise<CommitOutcome> {
  const steps = storeSteps(options.steps);
  const target = denseFolder(root, model);
  const found = (await readdir(staged)).sort();
  if (found.join('\n') !== [MANIFEST, DENSE_FOLDER].join('\n'))
    throw new ArtifactIntegrityError('TREE_INVALID', 'the staged folder does not hold exactly the declared entries', {
      where: staged,
      expected: [MANIFEST, DENSE_FOLDER],
      found,
    });
  await syncTree(staged, steps.sync);
  await makeFolder(dirname(target));
  for (const copy of (await keptDense(target)).reverse())
    if (await isWholeDense(model, copy)) await moveIfFree(copy, target, steps);
  if (options.replace) return replaceArtifact(target, staged, steps);
  if (await moveIfFree(staged, target, steps)) return 'registered';
  // What is not whole there can always be made again, so that the new one takes its place.
  return (await isWholeDense(model, target)) ? 'already-registered' : replaceArtifact(target, staged, steps);
}

/** True when a whole any-length graph of the model stands in this folder. */
export async function isWholeDense(model: ModelSpec, folder: string): Promise<boolean> {
  try {
    await verifyDense(await readDense(model, folder), sha256File);
    return true;
  } catch (error) {
    if (error instanceof LayaError || isSystemError(error)) return false;
    throw error;
  }
}
