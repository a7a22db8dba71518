import { isSystemError } from '../schemas/errors.js';
import { type CommitOutcome, commitArtifact, exchangeArtifact, prepareTarget, removeKept } from './commit.js';
import { moveIfFree } from './move.js';
import { type ArtifactKey, artifactFolder } from './paths.js';
import { type StoreSteps, storeSteps } from './steps.js';

/** A staged artifact that passed every gate. */
export interface StagedArtifact {
  readonly key: ArtifactKey;
  readonly folder: string;
  /** Take the place of what is registered. */
  readonly replace: boolean;
}

export interface SetOptions {
  readonly now: () => Date;
  readonly steps?: Partial<StoreSteps>;
}

/** What has to be done to take back a registration. */
interface Registration {
  readonly target: string;
  /** What was registered before, oldest first. */
  readonly kept: readonly string[];
}

/**
 * Registers all of the artifacts or none, protocol §12.3: each by its own rename, and previous ones are kept until the
 * last is registered. When one can't be, those before it are taken back and the previous ones stand again.
 */
export async function commitSet(
  root: string,
  artifacts: readonly StagedArtifact[],
  options: SetOptions,
): Promise<CommitOutcome[]> {
  const steps = storeSteps(options.steps);
  const done: Registration[] = [];
  const outcomes: CommitOutcome[] = [];
  try {
    for (const { key, folder, replace } of artifacts) {
      const target = artifactFolder(root, key);
      if (replace) {
        await prepareTarget(key, folder, target, steps);
        done.push({ target, kept: await exchangeArtifact(target, folder, steps) });
        outcomes.push('registered');
      } else {
        const outcome = await commitArtifact(root, key, folder, { replace, ...options });
        if (outcome === 'registered') done.push({ target, kept: [] });
        outcomes.push(outcome);
      }
    }
  } catch (error) {
    for (const registration of done.reverse()) await takeBack(registration, steps);
    throw error;
  }
  for (const { kept } of done) await removeKept(kept, steps);
  return outcomes;
}

/** A step that the system refuses is left: what stands there then is whole, and passed the gates. */
async function takeBack({ target, kept }: Registration, steps: StoreSteps): Promise<void> {
  const failed = `${target}.failed-${process.pid}`;
  try {
    await steps.rename(target, failed);
    const newest = kept.at(-1);
    if (newest !== undefined) await moveIfFree(newest, target, steps);
    await removeKept(kept.slice(0, -1), steps);
    await steps.remove(failed);
  } catch (error) {
    if (!isSystemError(error)) throw error;
  }
}
