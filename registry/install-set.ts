import { join } from 'node:path';
import type { CommitOutcome } from './commit.js';
import { commitSet, type SetOptions, type StagedArtifact } from './commit-set.js';
import { beginInstall, type PendingArtifact } from './install.js';
import { COMPILED, MANIFEST } from './paths.js';
import { storeSteps } from './steps.js';

/** Runs the gates on a model at the path it is given, and returns the manifest's text as it is to be registered. */
export type ProveOne = (artifact: StagedArtifact, model: string) => Promise<string>;

export interface InstallSetOptions extends SetOptions {
  /** Called once all gates have passed; throws when the set may not be registered any more. */
  readonly beforePublish: () => Promise<void>;
}

/**
 * Registers all of the artifacts or none, protocol §12.4: those that are new are proven at their registered paths, with
 * their manifests withheld; those that replace one in staging. Whatever `prove` throws ends it: nothing is registered,
 * and nothing of it is left.
 */
export async function installSet(
  root: string,
  artifacts: readonly StagedArtifact[],
  prove: ProveOne,
  options: InstallSetOptions,
): Promise<CommitOutcome[]> {
  const pending = new Map<StagedArtifact, PendingArtifact>();
  const replacing = artifacts.filter(({ replace }) => replace);
  try {
    for (const one of artifacts.filter(({ replace }) => !replace)) {
      const begun = await beginInstall(root, one.key, one.folder, options);
      if (begun) pending.set(one, begun);
    }
    const texts = await proveAll(artifacts, pending, prove, options);
    await options.beforePublish();
    for (const [one, begun] of pending) await begun.prepare(texts.get(one)!);
    await commitSet(root, replacing, options, async () => {
      for (const begun of pending.values()) await begun.publish();
    });
  } catch (error) {
    for (const begun of [...pending.values()].reverse()) await begun.withdraw();
    throw error;
  }
  for (const begun of pending.values()) await begun.settle();
  return artifacts.map((one) => (one.replace || pending.has(one) ? 'registered' : 'already-registered'));
}

/** Manifests of the pending ones; those of the others are written where they are staged. */
async function proveAll(
  artifacts: readonly StagedArtifact[],
  pending: ReadonlyMap<StagedArtifact, PendingArtifact>,
  prove: ProveOne,
  options: SetOptions,
): Promise<ReadonlyMap<StagedArtifact, string>> {
  const steps = storeSteps(options.steps);
  const texts = new Map<StagedArtifact, string>();
  for (const one of artifacts) {
    const begun = pending.get(one);
    if (begun) texts.set(one, await prove(one, begun.model));
    else if (one.replace) await steps.write(join(one.folder, MANIFEST), await prove(one, join(one.folder, COMPILED)));
  }
  return texts;
}
