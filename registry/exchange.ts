import { randomInt } from 'node:crypto';
import { lstat } from 'node:fs/promises';
import { isSystemError } from '../schemas/errors.js';
import { generationOf } from './generation.js';
import { moveIfFree, occupied } from './move.js';
import { refusePending } from './pending.js';
import { claim, removeClaimed } from './remove.js';
import type { StoreSteps } from './steps.js';

/** A registration that can still be taken back. */
export interface Registration {
  readonly target: string;
  /** What was registered there before, oldest first; moved aside. */
  readonly kept: readonly string[];
  /** What was registered (`generationOf`). */
  readonly generation: string | undefined;
}

/** Artifacts of other processes that may come in between before a replacement gives up. */
const ATTEMPTS = 50;
/** Numbers above every process id, for copies whose own process id is taken. */
const NO_PROCESS = 10_000_000;

/**
 * Moves what is registered aside, the staged folder into its place, checks it there, and removes what was moved
 * (protocol §3.3). When the check throws, the previous one stands again.
 */
export async function replaceArtifact(
  target: string,
  staged: string,
  steps: StoreSteps,
  check: () => Promise<void> = async () => undefined,
): Promise<'registered'> {
  const registration = await exchangeArtifact(target, staged, steps);
  try {
    await check();
  } catch (error) {
    await takeBack(registration, steps);
    throw error;
  }
  await removeKept(registration.kept, steps);
  return 'registered';
}

/** The two renames alone. */
export async function exchangeArtifact(target: string, staged: string, steps: StoreSteps): Promise<Registration> {
  const kept: string[] = [];
  for (let attempt = 1; ; attempt++) {
    refusePending(target);
    const aside = await moveAside(target, steps);
    if (aside !== undefined) kept.push(aside);
    try {
      // Point of no return: from this rename on, readers see the new artifact.
      if (await moveIfFree(staged, target, steps)) return await registrationAt(target, kept);
      if (attempt === ATTEMPTS) throw occupied(target);
    } catch (error) {
      if (aside !== undefined) await moveIfFree(aside, target, steps);
      throw error;
    }
  }
}

/** What was registered by a rename a moment ago. */
export const registrationAt = async (target: string, kept: readonly string[] = []): Promise<Registration> => ({
  target,
  kept,
  generation: await generationOf(target),
});

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

/**
 * Puts the previous one back. What another process registered meanwhile stays, and so does what the system refuses to
 * move: it is whole, or readers see by themselves that it is not.
 */
export async function takeBack({ target, kept, generation }: Registration, steps: StoreSteps): Promise<void> {
  const failed = `${target}.failed-${process.pid}`;
  try {
    if ((await generationOf(target)) !== generation) return;
    await steps.rename(target, failed);
    const newest = kept.at(-1);
    if (newest !== undefined) await moveIfFree(newest, target, steps);
    await removeKept(kept.slice(0, -1), steps);
    await steps.remove(failed);
  } catch (error) {
    if (!isSystemError(error)) throw error;
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
