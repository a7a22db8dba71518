import { evidenceKind } from '../registry/evidence.js';
import { readWhole } from '../registry/generation.js';
import { locateArtifact } from '../registry/locate.js';
import type { BuildLock } from '../registry/lock.js';
import { artifactFolder } from '../registry/paths.js';
import { readArtifact, verifyTree } from '../registry/read.js';
import { recordRejection } from '../registry/rejected.js';
import { checkWritable, type Staging } from '../registry/staging.js';
import { LayaError } from '../schemas/errors.js';
import type { Context } from './events.js';
import { findGoldens } from './goldens.js';
import { lockArtifact } from './lock.js';
import { rejectionRecord } from './manifest.js';
import type { BuildOrder } from './order.js';
import { projectFacts } from './project.js';
import { type BucketReport, type BuildReport, isRefusal, registeredRow, rejectedRow, skippedRow } from './report.js';
import { commit } from './stages/commit.js';
import { type Compiled, compile } from './stages/compile.js';
import { type Converted, convert } from './stages/convert.js';
import { install, movedTo } from './stages/install.js';
import { parity } from './stages/parity.js';
import { place } from './stages/place.js';
import { resolve } from './stages/resolve.js';
import { type Sealed, seal } from './stages/seal.js';
import { share } from './stages/share.js';
import { inStaging } from './staging.js';
import { Stopwatch } from './stopwatch.js';
import { installTools } from './tools/all.js';
import { checkPython } from './tools/python.js';

/**
 * The whole line: checkpoint -> resolve -> convert -> compile -> place -> parity -> seal -> commit.
 * Buckets that are registered and whole are skipped unless the order forces them. A bucket that a gate
 * refuses leaves a record and does not keep the others from being built.
 */
export async function buildArtifacts(order: BuildOrder, context: Context): Promise<BuildReport> {
  const watch = new Stopwatch(context);
  const done = order.force ? [] : await registeredRows(order, order.buckets, context);
  const missing = without(order.buckets, done);
  if (missing.length === 0) return { model: order.model.name, rows: done, seconds: watch.total() };

  await preflight(order, context);
  const locks = await lockAll(order, missing, context);
  try {
    const meanwhile = order.force ? [] : await registeredRows(order, missing, context);
    const pending = without(missing, meanwhile);
    const purpose = { model: order.model, bucket: pending[0] ?? 0 };
    const rest = { ...order, buckets: pending };
    const build = (staging: Staging) => runStages(rest, staging, locks, watch, context);
    const built = pending.length === 0 ? [] : await inStaging(purpose, watch, context, build);
    const rows = [...done, ...meanwhile, ...built].sort((a, b) => a.bucket - b.bucket);
    return { model: order.model.name, rows, seconds: watch.total() };
  } finally {
    for (const lock of locks.values()) await lock.release();
  }
}

async function runStages(
  order: BuildOrder,
  staging: Staging,
  locks: ReadonlyMap<number, BuildLock>,
  watch: Stopwatch,
  context: Context,
): Promise<BucketReport[]> {
  await installTools(order.toolchain, context);
  const resolved = await watch.stage(resolve, order);
  const converted = await refusable(order, order.buckets, 'convert', context, () =>
    watch.stage(convert, { resolved, staging }),
  );
  if (Array.isArray(converted)) return converted;
  const rows: BucketReport[] = [];
  for (const bucket of order.buckets) {
    const row = await refusable(
      order,
      [bucket],
      () => watch.running ?? 'build',
      context,
      () => buildBucket(converted, bucket, locks.get(bucket)!, watch, context),
    );
    rows.push(...(Array.isArray(row) ? row : [row]));
  }
  return rows;
}

async function buildBucket(
  converted: Converted,
  bucket: number,
  lock: BuildLock,
  watch: Stopwatch,
  context: Context,
): Promise<BucketReport> {
  watch.startBucket(bucket);
  const compiled = await watch.stage(compile, { converted, bucket });
  const shared = await watch.stage(share, compiled);
  if (converted.resolved.order.toolchain.isPathBound) return installBucket(shared, lock, watch, context);
  const sealed = await prove(shared, watch, context);
  const registered = await watch.stage(commit, { sealed, lock });
  return registeredRow(registered, watch.bucketSeconds());
}

/** The gates, and the manifest of what passed them. */
async function prove(compiled: Compiled, watch: Stopwatch, context: Context): Promise<Sealed> {
  const placed = await watch.stage(place, compiled);
  const proven = await watch.stage(parity, placed);
  const facts = { createdAt: context.now(), timings: watch.timings(), ...(await projectFacts(context)) };
  return watch.stage(seal, { proven, facts });
}

/** The same with the gates at the registered path. */
async function installBucket(
  compiled: Compiled,
  lock: BuildLock,
  watch: Stopwatch,
  context: Context,
): Promise<BucketReport> {
  const { converted, bucket } = compiled;
  const key = { model: converted.resolved.order.model, bucket };
  const proveThere = async (model: string): Promise<string> => {
    const { text } = await prove(movedTo(compiled, model), watch, context);
    await lock.assertHeld();
    return text;
  };
  const confirm = async (model: string): Promise<void> => void (await watch.stage(place, movedTo(compiled, model)));
  const isNew = await install({ compiled, prove: proveThere, confirm }, context);
  const { artifact, value: digest } = await readWhole(context.root, key, (one) => verifyTree(one));
  return {
    ...skippedRow(artifact, digest),
    ...(isNew ? { outcome: 'registered', seconds: watch.bucketSeconds() } : {}),
  };
}

/** Fails within the first second for what would make all later work vain. */
async function preflight(order: BuildOrder, context: Context): Promise<void> {
  await findGoldens(order.model, context.tools);
  await checkWritable(context.root);
  await Promise.all([checkPython('convert', context), order.toolchain.preflight(context)]);
}

async function lockAll(
  { model }: BuildOrder,
  buckets: readonly number[],
  context: Context,
): Promise<Map<number, BuildLock>> {
  const locks = new Map<number, BuildLock>();
  try {
    for (const bucket of buckets) locks.set(bucket, await lockArtifact({ model, bucket }, context));
    return locks;
  } catch (error) {
    for (const lock of locks.values()) await lock.release();
    throw error;
  }
}

/** Rows of the buckets whose registered artifact passes a full verification. */
async function registeredRows({ model, toolchain }: BuildOrder, buckets: readonly number[], context: Context) {
  const rows: BucketReport[] = [];
  for (const bucket of buckets) {
    const key = { model, bucket };
    const folder = await locateArtifact(context.root, key);
    if (folder !== artifactFolder(context.root, key)) continue;
    try {
      const artifact = await readArtifact(key, folder);
      const digest = await verifyTree(artifact);
      const kind = evidenceKind(artifact.manifest);
      if (kind !== toolchain.kind) context.emit({ kind: 'skipped', bucket, reason: otherEvidence(model.name, kind) });
      rows.push(skippedRow(artifact, digest));
    } catch (error) {
      if (!(error instanceof LayaError)) throw error;
    }
  }
  return rows;
}

const otherEvidence = (model: string, kind: string): string =>
  `registered with ${kind} evidence, and left; ${kind === 'portable' ? `laya-artifacts validate ${model}, or ` : ''}--force to build it again`;

/** Runs a step; a gate's refusal becomes a record on disk and a row for each bucket it is about. */
async function refusable<T>(
  { model }: BuildOrder,
  buckets: readonly number[],
  stage: string | (() => string),
  context: Context,
  step: () => Promise<T>,
): Promise<T | BucketReport[]> {
  try {
    return await step();
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const at = typeof stage === 'string' ? stage : stage();
    const rows: BucketReport[] = [];
    for (const bucket of buckets) {
      const facts = { model, bucket, createdAt: context.now() };
      const record = await recordRejection(context.root, facts, rejectionRecord(at, error, facts));
      context.emit({ kind: 'rejected', bucket, record });
      rows.push(rejectedRow(bucket, error, record));
    }
    return rows;
  }
}

const without = (buckets: readonly number[], rows: readonly BucketReport[]): number[] =>
  buckets.filter((bucket) => rows.every((row) => row.bucket !== bucket));
