import { type CommitOutcome, checkRegistered, prepareTarget, registerNew } from './commit.js';
import { exchangeArtifact, type Registration, registrationAt, removeKept, takeBack } from './exchange.js';
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
  /** Gates on a model that was registered in place of another one. */
  readonly confirm?: (artifact: StagedArtifact, model: string) => Promise<void>;
}

/**
 * Registers all of the artifacts or none, protocol §12.3: each by its own rename, and previous ones are kept until the
 * last is registered. When one can't be, those before it are taken back and the previous ones stand again.
 *
 * @param last Comes when all are registered and can still be taken back; what it throws takes them back
 */
export async function commitSet(
  root: string,
  artifacts: readonly StagedArtifact[],
  options: SetOptions,
  last: () => Promise<void> = async () => undefined,
): Promise<CommitOutcome[]> {
  const steps = storeSteps(options.steps);
  for (const { key, folder } of artifacts) await prepareTarget(key, folder, artifactFolder(root, key), steps);
  const done: Registration[] = [];
  const outcomes: CommitOutcome[] = [];
  try {
    for (const one of artifacts) {
      const { key, folder, replace } = one;
      const target = artifactFolder(root, key);
      if (replace) {
        done.push(await exchangeArtifact(target, folder, steps));
        await checkRegistered(root, key, async (model) => options.confirm?.(one, model));
        outcomes.push('registered');
      } else {
        const outcome = await registerNew(root, key, folder, options);
        if (outcome === 'registered') done.push(await registrationAt(target));
        outcomes.push(outcome);
      }
    }
    await last();
  } catch (error) {
    for (const registration of done.reverse()) await takeBack(registration, steps);
    throw error;
  }
  for (const { kept } of done) await removeKept(kept, steps);
  return outcomes;
}
