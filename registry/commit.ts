import { randomInt } from 'node:crypto';
import { lstat, readdir } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { isSystemError } from '../schemas/errors.js';
import { makeFolder, syncTree } from './durable.js';
import { ArtifactIntegrityError } from './errors.js';
import { isWhole } from './generation.js';
import { keptCopies } from './locate.js';
import { moveIfFree, occupied } from './move.js';
import { parseName } from './names.js';
import { type ArtifactKey, artifactFolder, COMPILED, MANIFEST } from './paths.js';
import { refusePending } from './pending.js';
import { processState } from './processes.js';
import { findProblem, moveToQuarantine } from './quarantine.js';
import { claim, removeClaimed } from './remove.js';
import { type StoreSteps, storeSteps } from './steps.js';

/** How a commit ended: the artifact is registered, or another builder's stands there already. */
export type CommitOutcome = 'registered' | 'already-registered';

export interface CommitOptions {
  /** Take the place of a registered artifact; otherwise it stays. */
  readonly replace: boolean;
  readonly steps?: Partial<StoreSteps>;
  readonly now?: () => Date;
}

/** Artifacts of other processes that may come in between before a replacement gives up. */
const ATTEMPTS = 50;
/** Numbers above every process id, for copies whose own process id is taken. */
const NO_PROCESS = 10_000_000;

/**
 * Publishes a staged artifact (a folder with exactly manifest.json and model.mlmodelc) at its
 * registered path, protocol §3.2 and §3.3. Without `replace` a registered artifact is left as it is, and one that is
 * not whole goes to quarantine. With it the previous one is moved aside, and back again if the new one can't take its
 * place.
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
  if (options.replace) return replaceArtifact(target, staged, steps);
  if (await moveIfFree(staged, target, steps)) return 'registered';
  const problem = await findProblem(root, key);
  if (!problem) return 'already-registered';
  await moveToQuarantine(root, key, { reason: problem.message, now: (options.now ?? (() => new Date()))(), steps });
  return (await moveIfFree(staged, target, steps)) ? 'registered' : 'already-registered';
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

/** Moves the registered artifact aside, the staged one into its place, and removes what was moved (protocol §3.3). */
export async function replaceArtifact(target: string, staged: string, steps: StoreSteps): Promise<CommitOutcome> {
  await removeKept(await exchangeArtifact(target, staged, steps), steps);
  return 'registered';
}

/** The same but for the removal: the copies that were moved aside, oldest first. */
export async function exchangeArtifact(target: string, staged: string, steps: StoreSteps): Promise<string[]> {
  const kept: string[] = [];
  for (let attempt = 1; ; attempt++) {
    refusePending(target);
    const aside = await moveAside(target, steps);
    if (aside !== undefined) kept.push(aside);
    try {
      // Point of no return: from this rename on, readers see the new artifact.
      if (await moveIfFree(staged, target, steps)) return kept;
      if (attempt === ATTEMPTS) throw occupied(target);
    } catch (error) {
      if (aside !== undefined) await moveIfFree(aside, target, steps);
      throw error;
    }
  }
}

/** Moves what is registered to a name of its own beside it; undefined when nothing is (transition T2). */
async function moveAside(target: string, steps: StoreSteps): Promise<string | undefined> {
  for (let number = process.pid; ; number = NO_PROCESS + randomInt(1_000_000_000)) {
    const aside = `${target}.old-${number}`;
    try {
      if (!(await lstat(target)).isDirectory()) throw occupied(target);
      await steps.rename(target, aside);
      return aside;
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return undefined;
      if (!isSystemError(error, 'ENOTEMPTY', 'EEXIST', 'ENOTDIR')) throw error;
    }
  }
}

/** The new artifact is registered: what can't be removed of the previous ones is left to prune (transition T5). */
export async function removeKept(copies: readonly string[], steps: StoreSteps): Promise<void> {
  for (const copy of copies)
    try {
      await removeClaimed(await claim(copy, steps), steps);
    } catch (error) {
      if (!isSystemError(error)) throw error;
    }
}
