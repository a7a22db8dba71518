import { readdir, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isSystemError } from '../schemas/errors.js';
import { makeFolder, syncPath, syncTree } from './durable.js';
import { ArtifactIntegrityError, StoreError } from './errors.js';
import { keptCopies } from './locate.js';
import { type ArtifactKey, artifactFolder, COMPILED, MANIFEST } from './paths.js';

/** How a commit ended: the artifact is registered, or another builder's stands there already. */
export type CommitOutcome = 'registered' | 'already-registered';

/** The file system calls that decide; tests inject faults here. */
export interface CommitSteps {
  readonly rename: (from: string, to: string) => Promise<void>;
  readonly sync: (path: string) => Promise<void>;
}

const STEPS: CommitSteps = { rename, sync: syncPath };

/**
 * Publishes a staged artifact (a folder with exactly manifest.json and model.mlmodelc) at its
 * registered path, protocol §3.2 and §3.3. Without `replace` a registered artifact is left as it is.
 * With it the previous one is moved aside, and back again if the new one can't take its place.
 */
export async function commitArtifact(
  root: string,
  key: ArtifactKey,
  staged: string,
  options: { readonly replace: boolean; readonly steps?: CommitSteps },
): Promise<CommitOutcome> {
  const steps = options.steps ?? STEPS;
  const target = artifactFolder(root, key);
  await checkDeclaredFiles(staged);
  await syncTree(staged);
  await makeFolder(dirname(target));
  await restorePrevious(target, steps);
  if (options.replace) return replaceArtifact(target, staged, steps);
  return (await moveIfFree(staged, target, steps)) ? 'registered' : 'already-registered';
}

/** Nothing but the declared files may be published: no marker, no leftover (faults B01, R01). */
async function checkDeclaredFiles(staged: string): Promise<void> {
  const found = (await readdir(staged)).sort();
  if (found.join('\n') === [MANIFEST, COMPILED].join('\n')) return;
  throw new ArtifactIntegrityError('TREE_INVALID', 'the staged folder does not hold exactly the declared entries', {
    where: staged,
    expected: [MANIFEST, COMPILED],
    found,
  });
}

/** A replacement that died between its two renames is undone before anything else happens here. */
async function restorePrevious(target: string, steps: CommitSteps): Promise<void> {
  const newest = (await keptCopies(target)).at(-1);
  if (newest !== undefined) await moveIfFree(newest, target, steps);
}

async function replaceArtifact(target: string, staged: string, steps: CommitSteps): Promise<CommitOutcome> {
  const aside = `${target}.old-${process.pid}`;
  const previous = await moveAside(target, aside, steps);
  try {
    // Point of no return: from this rename on, readers see the new artifact.
    if (!(await moveIfFree(staged, target, steps))) throw occupied(target);
  } catch (error) {
    if (previous) await moveIfFree(aside, target, steps);
    throw error;
  }
  if (previous) await rm(aside, { recursive: true, force: true });
  return 'registered';
}

async function moveAside(target: string, aside: string, steps: CommitSteps): Promise<boolean> {
  await rm(aside, { recursive: true, force: true });
  try {
    await steps.rename(target, aside);
    return true;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return false;
    throw error;
  }
}

/**
 * Renames a folder to a path that must be free, and flushes the folder it stands in.
 * rename(2) refuses a target folder that holds anything and takes an empty one, which no artifact is (fault R11).
 */
async function moveIfFree(from: string, to: string, steps: CommitSteps): Promise<boolean> {
  try {
    await steps.rename(from, to);
  } catch (error) {
    if (isSystemError(error, 'ENOTEMPTY', 'EEXIST')) return false;
    if (isSystemError(error, 'ENOTDIR')) throw occupied(to, error);
    throw error;
  }
  await steps.sync(dirname(to));
  return true;
}

function occupied(target: string, cause?: unknown): StoreError {
  return new StoreError('TARGET_OCCUPIED', 'the registered path is taken by something else', {
    where: target,
    hint: 'move it away, then build again',
    cause,
  });
}
