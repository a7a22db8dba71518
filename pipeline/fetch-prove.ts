import { join } from 'node:path';
import type { CommitOutcome } from '../registry/commit.js';
import { commitSet, type StagedArtifact } from '../registry/commit-set.js';
import { writeFileDurably } from '../registry/durable.js';
import { readWhole } from '../registry/generation.js';
import { installSet } from '../registry/install-set.js';
import type { BuildLock } from '../registry/lock.js';
import { COMPILED, MANIFEST } from '../registry/paths.js';
import { shareFiles } from '../registry/sharing.js';
import type { Staging } from '../registry/staging.js';
import { lookAt } from '../registry/stamps.js';
import { checkProvenWith } from '../runtime/checkpoint-pins.js';
import type { Context } from './events.js';
import { confirmPlacement, keepEvidence, proveImport, reject } from './import.js';
import { isRefusal } from './report.js';
import { type Resolved, resolve } from './stages/resolve.js';
import type { Unpacked } from './stages/unpack.js';
import type { Stopwatch } from './stopwatch.js';

/** What was fetched, and where each of it stands in staging. */
export interface FetchedSet {
  readonly all: readonly Unpacked[];
  /** In the order of `all`. */
  readonly staged: readonly StagedArtifact[];
  readonly build: Parameters<typeof resolve>[0];
  readonly locks: readonly BuildLock[];
}

/** All are registered, or the first refusal ended it and none is. */
export type SetOutcome =
  | { readonly outcomes: readonly CommitOutcome[] }
  | { readonly refused: Unpacked; readonly record: { path: string; code: string; reason: string } };

/**
 * The gates on every model, then the registration of all. They run in staging, or at the registered paths when a verdict
 * holds for one path (protocol §12.2).
 */
export async function proveAndRegister(
  set: FetchedSet,
  staging: Staging,
  watch: Stopwatch,
  context: Context,
): Promise<SetOutcome> {
  const { all, staged, build, locks } = set;
  const resolved = await watch.stage(resolve, build);
  for (const { key, folder, archive } of all) {
    const model = join(folder, COMPILED);
    checkProvenWith({ key, folder, model, manifest: archive.manifest }, resolved.files);
    await shareFiles(context.root, key, model, archive.tree);
  }
  let current: Unpacked | undefined;
  const prove = async (one: StagedArtifact, model: string): Promise<string> => {
    current = all[staged.indexOf(one)]!;
    const text = await proveOne(current, model, resolved, staging, watch, context);
    if (!one.replace) return text;
    const { value: previous } = await readWhole(context.root, one.key, async ({ manifest }) => manifest);
    return keepEvidence(text, previous);
  };
  const confirm = async ({ key }: StagedArtifact, model: string): Promise<void> => {
    current = all.find((one) => one.key === key)!;
    await confirmPlacement({ resolved, bucket: key.bucket, model, temp: staging.temp }, watch, context);
  };
  const beforePublish = async (): Promise<void> => {
    for (const lock of locks) await lock.assertHeld();
  };
  try {
    const { root, now } = context;
    const options = { now, confirm, beforePublish };
    if (build.toolchain.isPathBound) return { outcomes: await installSet(root, staged, prove, options) };
    for (const one of staged)
      await writeFileDurably(join(one.folder, MANIFEST), await prove(one, join(one.folder, COMPILED)));
    await beforePublish();
    return { outcomes: await commitSet(root, staged, options) };
  } catch (error) {
    if (!isRefusal(error) || !current) throw error;
    return { refused: current, record: await reject(current.key, watch.running ?? 'fetch', error, context) };
  }
}

async function proveOne(
  unpacked: Unpacked,
  model: string,
  resolved: Resolved,
  staging: Staging,
  watch: Stopwatch,
  context: Context,
): Promise<string> {
  const { bucket } = unpacked.key;
  watch.startBucket(bucket);
  const { own: look } = await lookAt(model);
  return proveImport(unpacked, { resolved, bucket, model, temp: staging.temp }, look, watch, context);
}
