import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DENSE, DENSE_FOLDER, denseFolder, locateDense, readDense } from '../../registry/dense.js';
import { commitDense, isWholeDense } from '../../registry/dense-commit.js';
import type { BuildLock } from '../../registry/lock.js';
import type { ModelSpec } from '../../registry/models.js';
import { recordRejection } from '../../registry/rejected.js';
import { checkWritable, type Staging } from '../../registry/staging.js';
import type { Rejected } from '../../schemas/generated/types.js';
import type { Context } from '../events.js';
import { findGoldens } from '../goldens.js';
import { lockArtifact } from '../lock.js';
import { rejectionRecord } from '../manifest.js';
import type { BuildOrder } from '../order.js';
import { projectFacts } from '../project.js';
import { isRefusal } from '../report.js';
import { resolve } from '../stages/resolve.js';
import { inStaging } from '../staging.js';
import { Stopwatch } from '../stopwatch.js';
import { emitDense } from './emit.js';
import { type DenseCandidate, DenseRefusal, placeDense, proveDense } from './prove.js';
import { digestDense, sealDense } from './seal.js';

/** What became of a model's any-length graph; figures of the gate where it was reached. */
export interface DenseReport {
  readonly model: string;
  readonly outcome: 'registered' | 'already-registered' | 'rejected';
  /** The registered folder, or the rejected record. */
  readonly path: string;
  readonly seconds: number;
  readonly rows?: number;
  readonly prob_max_abs?: number;
  readonly bytes?: number;
  readonly artifact_sha256?: string;
  readonly code?: string;
  readonly reason?: string;
}

/** Stands in for a bucket where locks and staging folders are named by one. */
const ANY = 0;

/**
 * Checkpoint -> resolve -> emit -> place -> parity -> seal -> commit, for the any-length graph. It needs no Python and no
 * compiler. One that is registered and whole stays unless the order forces it. A gate's refusal leaves a record.
 */
export async function buildDense(order: BuildOrder, context: Context): Promise<DenseReport> {
  const watch = new Stopwatch(context);
  const found = order.force ? undefined : await registered(order.model, watch, context);
  if (found) return found;
  await findGoldens(order.model, context.tools);
  await checkWritable(context.root);
  const lock = await lockArtifact({ model: order.model, bucket: ANY }, context);
  try {
    const meanwhile = order.force ? undefined : await registered(order.model, watch, context);
    return meanwhile ?? (await stagedBuild({ ...order, buckets: [] }, lock, watch, context));
  } finally {
    await lock.release();
  }
}

async function stagedBuild(order: BuildOrder, lock: BuildLock, watch: Stopwatch, context: Context) {
  const work = (staging: Staging): Promise<DenseReport> => runStages(order, staging, lock, watch, context);
  try {
    return await inStaging({ model: order.model, bucket: ANY }, watch, context, work);
  } catch (error) {
    if (isRefusal(error)) return reject(order.model, error, watch, context);
    throw error;
  }
}

async function runStages(
  order: BuildOrder,
  staging: Staging,
  lock: BuildLock,
  watch: Stopwatch,
  context: Context,
): Promise<DenseReport> {
  const resolved = await watch.stage(resolve, order);
  const staged = join(staging.path, 'buckets', 'any');
  const folder = join(staged, DENSE_FOLDER);
  await mkdir(folder, { recursive: true });
  const candidate: DenseCandidate = { resolved, folder, temp: staging.temp };
  const emit = (): Promise<Record<string, number>> => emitDense(resolved.checkpoint, folder);
  const place = (one: DenseCandidate) => placeDense(one);
  const parity = (one: DenseCandidate) => proveDense(one, context);
  const operations = await watch.stage(emit, undefined);
  const before = await digestDense(staged);
  const placement = await watch.stage(place, candidate);
  const figures = await watch.stage(parity, candidate);
  const facts = { createdAt: context.now(), timings: watch.timings(), ...(await projectFacts(context)) };
  const seal = () => sealDense({ resolved, folder: staged, operations, placement, parity: figures }, before, facts);
  const { manifest, digest } = await watch.stage(seal, undefined);
  await lock.assertHeld();
  const commit = () => commitDense(context.root, order.model, staged, { replace: order.force, now: context.now });
  const outcome = await watch.stage(commit, undefined);
  return {
    model: order.model.name,
    outcome,
    path: denseFolder(context.root, order.model),
    seconds: watch.total(),
    rows: manifest.parity.rows!,
    prob_max_abs: manifest.parity.prob_max_abs!,
    bytes: digest.bytes,
    artifact_sha256: digest.v1,
  };
}

/** The report of a graph that is registered and whole. */
async function registered(model: ModelSpec, watch: Stopwatch, { root }: Context): Promise<DenseReport | undefined> {
  const folder = denseFolder(root, model);
  if ((await locateDense(root, model)) !== folder || !(await isWholeDense(model, folder))) return undefined;
  const { parity, integrity } = (await readDense(model, folder)).manifest;
  return {
    model: model.name,
    outcome: 'already-registered',
    path: folder,
    seconds: watch.total(),
    rows: parity.rows!,
    prob_max_abs: parity.prob_max_abs!,
    bytes: integrity.files.reduce((sum, { bytes }) => sum + bytes, 0),
    artifact_sha256: integrity.artifact_sha256,
  };
}

async function reject(
  model: ModelSpec,
  error: Parameters<typeof rejectionRecord>[1],
  watch: Stopwatch,
  { root, now, emit }: Context,
): Promise<DenseReport> {
  const facts = { model, bucket: model.maxLen, createdAt: now() };
  const record: Rejected = {
    ...rejectionRecord(watch.running ?? 'build', error, facts),
    artifact: {
      graph: DENSE.name,
      length: model.maxLen,
      batch: 1,
      precision: DENSE.precision,
      max_options: model.maxLen,
    },
    parity: error instanceof DenseRefusal ? { ...error.parity } : null,
  };
  const path = await recordRejection(root, facts, record);
  emit({ kind: 'rejected', bucket: model.maxLen, record: path });
  return {
    model: model.name,
    outcome: 'rejected',
    path,
    seconds: watch.total(),
    code: error.code,
    reason: error.message,
  };
}
