import { hostname } from 'node:os';
import { join } from 'node:path';
import { isSystemError } from '../schemas/errors.js';
import { type CommitOptions, type CommitOutcome, type Confirm, checkRegistered, prepareTarget } from './commit.js';
import { recordText } from './durable.js';
import { replaceArtifact } from './exchange.js';
import { readMarker } from './markers.js';
import { moveIfFree, occupied } from './move.js';
import { type ArtifactKey, artifactFolder, COMPILED, MANIFEST } from './paths.js';
import { PENDING, pendingInstall, refusePending } from './pending.js';
import { findProblem, moveToQuarantine } from './quarantine.js';
import { claim, removeClaimed } from './remove.js';
import { type StoreSteps, storeSteps } from './steps.js';

/** Where the manifest waits until the gates have passed (protocol §3.7). */
const PENDING_MANIFEST = 'manifest.pending.json';

/** Runs the gates on a model at the path it is given, and returns the manifest's text as it is to be registered. */
export type Prove = (model: string) => Promise<string>;

export interface InstallOptions extends Omit<CommitOptions, 'now'> {
  readonly now: () => Date;
  /** Gates on a model that was registered in place of another one. */
  readonly confirm?: Confirm;
}

/**
 * Registers a staged artifact that has yet to pass the gates of this machine, protocol §3.7. Without `replace` they run
 * at the registered path, where no reader sees an artifact until they have passed; an artifact that is registered there
 * stays. With it they run in staging, the previous artifact is served until they have passed, and put back when `confirm`
 * refuses the new one where it stands then.
 * Whatever `prove` throws ends the install: nothing is registered, and nothing of it is left.
 */
export async function installArtifact(
  root: string,
  key: ArtifactKey,
  staged: string,
  prove: Prove,
  options: InstallOptions,
): Promise<CommitOutcome> {
  const steps = storeSteps(options.steps);
  const target = artifactFolder(root, key);
  await prepareTarget(key, staged, target, steps);
  await removeAbandoned(target, steps);
  if (options.replace) {
    await steps.write(join(staged, MANIFEST), await prove(join(staged, COMPILED)));
    return replaceArtifact(target, staged, steps, () => checkRegistered(root, key, options.confirm));
  }
  const pending = await occupy(root, key, staged, options, steps);
  if (!pending) return 'already-registered';
  try {
    await pending.prepare(await prove(pending.model));
    await pending.publish();
  } catch (error) {
    await pending.withdraw();
    throw error;
  }
  await pending.settle();
  return 'registered';
}

/** An artifact at its registered path whose manifest is withheld, until it is published or withdrawn. */
export interface PendingArtifact {
  /** Where its gates run. */
  readonly model: string;
  /** Writes the final manifest under its waiting name: all of publishing that needs room on the disk. */
  prepare(manifest: string): Promise<void>;
  /** Readers see it from here on (transition T9). */
  publish(): Promise<void>;
  /** Takes it away again (transition T10), also when it was published, as long as it has not been settled. */
  withdraw(): Promise<void>;
  /** Removes the marker of a published one. */
  settle(): Promise<void>;
}

/**
 * The first half of an install: the staged artifact stands at its registered path (transition T8). Undefined when one is
 * registered there already.
 */
export async function beginInstall(
  root: string,
  key: ArtifactKey,
  staged: string,
  options: Pick<InstallOptions, 'now' | 'steps'>,
): Promise<PendingArtifact | undefined> {
  const steps = storeSteps(options.steps);
  const target = artifactFolder(root, key);
  await prepareTarget(key, staged, target, steps);
  await removeAbandoned(target, steps);
  return occupy(root, key, staged, options, steps);
}

/** An install whose process died is no artifact; it makes room. One that may still run is not disturbed. */
async function removeAbandoned(target: string, steps: StoreSteps): Promise<void> {
  refusePending(target);
  if (pendingInstall(target) === undefined) return;
  await removeClaimed(await claim(target, steps), steps);
}

/** Withdrawn again when anything fails after it was moved. */
async function occupy(
  root: string,
  key: ArtifactKey,
  staged: string,
  options: Pick<InstallOptions, 'now'>,
  steps: StoreSteps,
): Promise<PendingArtifact | undefined> {
  const target = artifactFolder(root, key);
  try {
    return (await moveThere(root, key, staged, options, steps)) ? pendingArtifact(target, steps) : undefined;
  } catch (error) {
    await withdraw(target, steps);
    throw error;
  }
}

function pendingArtifact(target: string, steps: StoreSteps): PendingArtifact {
  let isPublished = false;
  return {
    model: join(target, COMPILED),
    prepare: (manifest) => steps.write(join(target, PENDING_MANIFEST), manifest),
    publish: async () => {
      await publish(target, steps);
      isPublished = true;
    },
    withdraw: () => (isPublished ? takeBack(target, steps) : withdraw(target, steps)),
    settle: () => steps.unlink(join(target, PENDING)).catch(leftForPrune),
  };
}

/** The staged folder to the registered path, its manifest withheld (transition T8); false when an artifact is there. */
async function moveThere(
  root: string,
  key: ArtifactKey,
  staged: string,
  options: Pick<InstallOptions, 'now'>,
  steps: StoreSteps,
): Promise<boolean> {
  const target = artifactFolder(root, key);
  const marker = { pid: process.pid, host: hostname(), since: options.now().toISOString() };
  await steps.write(join(staged, PENDING), recordText(marker));
  await steps.rename(join(staged, MANIFEST), join(staged, PENDING_MANIFEST));
  await steps.sync(staged);
  if (await moveIfFree(staged, target, steps)) return true;
  const problem = await findProblem(root, key);
  if (!problem) return false;
  await moveToQuarantine(root, key, { reason: problem.message, now: options.now(), steps });
  if (await moveIfFree(staged, target, steps)) return true;
  throw occupied(target);
}

/** Gives the manifest its own name (transition T9). */
async function publish(target: string, steps: StoreSteps): Promise<void> {
  if (pendingInstall(target)?.pid !== process.pid) throw occupied(target);
  // Point of no return: from this rename on, readers see the artifact.
  await steps.rename(join(target, PENDING_MANIFEST), join(target, MANIFEST));
  await steps.sync(target).catch(leftForPrune);
}

/** Takes an install that failed away from the registered path, then removes it (transition T10). */
async function withdraw(target: string, steps: StoreSteps): Promise<void> {
  if (pendingInstall(target)?.pid === process.pid) await removeFailed(target, steps);
}

/** The same for one that was published a moment ago, with another of its set. */
async function takeBack(target: string, steps: StoreSteps): Promise<void> {
  if (readMarker(join(target, PENDING))?.pid === process.pid) await removeFailed(target, steps);
}

async function removeFailed(target: string, steps: StoreSteps): Promise<void> {
  try {
    const failed = `${target}.failed-${process.pid}`;
    await steps.rename(target, failed);
    await steps.remove(failed);
  } catch (error) {
    leftForPrune(error);
  }
}

/** What is left of an install that has ended is prune's to remove. */
function leftForPrune(error: unknown): void {
  if (!isSystemError(error)) throw error;
}
