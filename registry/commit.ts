import { readdir } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { isSystemError } from '../schemas/errors.js';
import { makeFolder, syncTree } from './durable.js';
import { ArtifactIntegrityError } from './errors.js';
import { replaceArtifact } from './exchange.js';
import { isWhole, readWhole } from './generation.js';
import { keptCopies } from './locate.js';
import { moveIfFree } from './move.js';
import { parseName } from './names.js';
import { type ArtifactKey, artifactFolder, COMPILED, MANIFEST } from './paths.js';
import { processState } from './processes.js';
import { findProblem, moveToQuarantine } from './quarantine.js';
import { verifyTree } from './read.js';
import { type StoreSteps, storeSteps } from './steps.js';

/** How a commit ended: the artifact is registered, or another builder's stands there already. */
export type CommitOutcome = 'registered' | 'already-registered';

export interface CommitOptions {
  /** Take the place of a registered artifact; otherwise it stays. */
  readonly replace: boolean;
  readonly steps?: Partial<StoreSteps>;
  readonly now?: () => Date;
}

/**
 * Publishes a staged artifact (a folder with exactly manifest.json and model.mlmodelc) at its
 * registered path, protocol §3.2 and §3.3. Without `replace` a registered artifact is left as it is, and one that is
 * not whole goes to quarantine. With it the previous one is moved aside, and back again if the new one can't take its
 * place or is not whole there.
 */
export async function commitArtifact(
  root: string,
  key: ArtifactKey,
  staged: string,
  options: CommitOptions,
): Promise<CommitOutcome> {
  const steps = storeSteps(options.steps);
  const target = artifactFolder(root, key);
  await prepareTarget(key, staged, target, steps);
  if (options.replace) return replaceArtifact(target, staged, steps, () => checkRegistered(root, key));
  return registerNew(root, key, staged, options);
}

/** The same for a target that was prepared, without `replace`. */
export async function registerNew(
  root: string,
  key: ArtifactKey,
  staged: string,
  options: Omit<CommitOptions, 'replace'>,
): Promise<CommitOutcome> {
  const steps = storeSteps(options.steps);
  const target = artifactFolder(root, key);
  if (await moveIfFree(staged, target, steps)) return 'registered';
  const problem = await findProblem(root, key);
  if (!problem) return 'already-registered';
  await moveToQuarantine(root, key, { reason: problem.message, now: (options.now ?? (() => new Date()))(), steps });
  return (await moveIfFree(staged, target, steps)) ? 'registered' : 'already-registered';
}

/** Gates on the model that was registered in place of another one; throws what they refuse it with. */
export type Confirm = (model: string) => Promise<void>;

/** What stands at the registered path is whole, and passes what has to be seen there. Throws Artifact*Error otherwise. */
export async function checkRegistered(root: string, key: ArtifactKey, confirm?: Confirm): Promise<void> {
  const { artifact } = await readWhole(root, key, (one) => verifyTree(one));
  await confirm?.(artifact.model);
}

/** What comes before every publication, protocol §3.2, steps 1 to 4. */
export async function prepareTarget(
  key: ArtifactKey,
  staged: string,
  target: string,
  steps: StoreSteps,
): Promise<void> {
  await checkDeclaredFiles(staged);
  await syncTree(staged, steps.sync);
  await makeFolder(dirname(target));
  await restorePrevious(key, target, steps);
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

/** A replacement that died between its two renames is undone before anything else happens here (transition T4). */
async function restorePrevious(key: ArtifactKey, target: string, steps: StoreSteps): Promise<void> {
  for (const copy of (await keptCopies(target)).reverse()) {
    if (!(await isFree(target))) return;
    if (isInUse(copy) || !(await isWhole(key, copy))) continue;
    const moved = await moveIfFree(copy, target, steps).catch((error: unknown) => {
      // Another process moved it back, or used it up.
      if (isSystemError(error, 'ENOENT')) return false;
      throw error;
    });
    if (moved) return;
  }
}

/** True for a copy of another process that still runs: it will put it back, or remove it. */
function isInUse(copy: string): boolean {
  const { pid } = parseName(basename(copy));
  return pid !== process.pid && processState(pid) === 'alive';
}

/** True when rename(2) would take the path: nothing there, or an empty folder. */
async function isFree(path: string): Promise<boolean> {
  try {
    return (await readdir(path)).length === 0;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return true;
    if (isSystemError(error)) return false;
    throw error;
  }
}
