import { dirname, join } from 'node:path';
import { isSystemError, LayaError } from '../schemas/errors.js';
import { makeFolder, recordText } from './durable.js';
import { ArtifactMissingError } from './errors.js';
import { isWhole, readWhole } from './generation.js';
import { locateArtifact } from './locate.js';
import { moveIfFree } from './move.js';
import { type ArtifactKey, artifactFolder, artifactPath, flatName, QUARANTINED, quarantineFolder } from './paths.js';
import { refusePending } from './pending.js';
import { incomplete } from './problems.js';
import { verifyTree } from './read.js';
import { type StoreSteps, storeSteps } from './steps.js';

export interface QuarantineOptions {
  readonly reason: string;
  readonly now: Date;
  readonly steps?: Partial<StoreSteps>;
  /** Move it though it is whole. */
  readonly evenWhole?: boolean;
}

/**
 * Why the artifact at a registered path can't be used; undefined when it is whole or nothing is there. Every byte is
 * read. Throws system errors that say nothing about the artifact.
 */
export async function findProblem(root: string, key: ArtifactKey): Promise<LayaError | undefined> {
  try {
    await readWhole(root, key, (artifact) => verifyTree(artifact));
    return undefined;
  } catch (error) {
    if (error instanceof ArtifactMissingError) return incomplete(artifactFolder(root, key));
    if (error instanceof LayaError) return error;
    throw error;
  }
}

/**
 * Takes what stands at a registered path out of use: one rename into `quarantine/`, then its record (protocol §8).
 * Callers hold the target's lock and have found it not whole; the moved copy is checked once more, and moved back if it
 * is whole, because then the check saw a replacement (fault R20). Returns the entry's name; undefined when nothing had
 * to be moved. Throws StoreError TARGET_OCCUPIED while an import works there.
 */
export async function moveToQuarantine(
  root: string,
  key: ArtifactKey,
  options: QuarantineOptions,
): Promise<string | undefined> {
  const steps = storeSteps(options.steps);
  const from = (await locateArtifact(root, key)) ?? artifactFolder(root, key);
  refusePending(from);
  await makeFolder(quarantineFolder(root));
  const name = await moveToEntry(root, key, from, options.now, steps);
  if (name === undefined) return undefined;
  const entry = join(quarantineFolder(root), name);
  let { reason } = options;
  if (!options.evenWhole && (await isWhole(key, entry))) {
    if (await moveIfFree(entry, artifactFolder(root, key), steps)) return undefined;
    reason = `whole, and replaced while it was checked (${reason})`;
  }
  await steps.sync(dirname(from));
  await steps.sync(quarantineFolder(root));
  await steps.write(join(entry, QUARANTINED), recordText({ reason, at: stampOf(options.now), from }));
  return name;
}

/** The rename; another second in the name where the entry is taken. Undefined when nothing stands there any more. */
async function moveToEntry(root: string, key: ArtifactKey, from: string, now: Date, steps: StoreSteps) {
  for (let seconds = 0; ; seconds++) {
    const at = stampOf(new Date(now.getTime() + seconds * 1000));
    const name = `${flatName(artifactPath(key))}-${at}-${process.pid}`;
    try {
      await steps.rename(from, join(quarantineFolder(root), name));
      return name;
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return undefined;
      if (!isSystemError(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    }
  }
}

/** `YYYYmmddTHHMMSSZ`. */
const stampOf = (date: Date): string => date.toISOString().replace(/[-:]|\.\d+/g, '');
