import { join } from 'node:path';
import { commitArtifact } from '../registry/commit.js';
import { readWhole } from '../registry/generation.js';
import type { BuildLock } from '../registry/lock.js';
import { MANIFEST } from '../registry/paths.js';
import { type OpenedArtifact, verifyTree } from '../registry/read.js';
import { restage } from '../registry/restage.js';
import type { Staging } from '../registry/staging.js';
import type { StoreSteps } from '../registry/steps.js';
import type { TreeDigest } from '../registry/tree.js';
import { checkProvenWith } from '../runtime/checkpoint-pins.js';
import { readText } from '../schemas/door.js';
import type { Manifest } from '../schemas/generated/types.js';
import { type JsonObject, parseJson, stringifyJson } from '../schemas/json.js';
import type { Context } from './events.js';
import { evidenceFields, type Verdict, withEvidence } from './evidence.js';
import { reject } from './import.js';
import { lockArtifact } from './lock.js';
import type { BuildOrder } from './order.js';
import { isProvenHere } from './profile.js';
import { isRefusal } from './report.js';
import { proveParity } from './stages/parity.js';
import { type Candidate, provePlacement } from './stages/place.js';
import { type Resolved, resolve } from './stages/resolve.js';
import { inStaging } from './staging.js';
import { Stopwatch } from './stopwatch.js';

/** What became of one registered artifact. */
export interface ValidateRow {
  readonly bucket: number;
  /** `already-validated`: its evidence is of this kind of machine. */
  readonly outcome: 'validated' | 'already-validated' | 'rejected';
  /** The registered folder, or the rejected record. */
  readonly path: string;
  readonly artifact_sha256: string;
  readonly placement: Manifest['placement'] | null;
  readonly load_probe: NonNullable<Manifest['evidence']>['load_probe'] | null;
  readonly rows: number | null;
  readonly prob_max_abs: number | null;
  readonly seconds: number;
  readonly code?: string;
  readonly reason?: string;
}

export interface ValidateReport {
  readonly model: string;
  readonly rows: readonly ValidateRow[];
  readonly seconds: number;
}

/**
 * Runs the gates of this machine on registered artifacts, where they stand, and gives those that pass its evidence: the
 * same bytes under another manifest take their own place by §3.3. What they had been proven by before stays in the
 * manifest. A gate's refusal leaves a record and the artifact as it was. The toolchain is ready.
 * Throws Artifact*Error, StoreError; nothing registered is changed then.
 *
 * @param steps File system calls in place of the real ones
 */
export async function validateArtifacts(
  order: BuildOrder,
  context: Context,
  steps: Partial<StoreSteps> = {},
): Promise<ValidateReport> {
  const watch = new Stopwatch(context);
  const resolved = await watch.stage(resolve, order);
  const rows: ValidateRow[] = [];
  for (const bucket of order.buckets) {
    watch.startBucket(bucket);
    const lock = await lockArtifact({ model: order.model, bucket }, context);
    try {
      rows.push(await validateBucket({ resolved, bucket, lock, steps }, watch, context));
    } finally {
      await lock.release();
    }
  }
  return { model: order.model.name, rows, seconds: watch.total() };
}

interface Task {
  readonly resolved: Resolved;
  readonly bucket: number;
  readonly lock: BuildLock;
  readonly steps: Partial<StoreSteps>;
}

async function validateBucket(task: Task, watch: Stopwatch, context: Context): Promise<ValidateRow> {
  const { resolved, bucket } = task;
  const { model, toolchain } = resolved.order;
  const key = { model, bucket };
  const { artifact, value: digest } = await readWhole(context.root, key, (one) => verifyTree(one));
  if (isProvenHere(artifact.manifest, toolchain)) return rowOf(artifact.manifest, artifact, 'already-validated', watch);
  checkProvenWith(artifact, resolved.files);
  try {
    const manifest = await inStaging(key, watch, context, (staging) =>
      proveAndPublish(task, artifact, digest, staging, watch, context),
    );
    return rowOf(manifest, artifact, 'validated', watch);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const record = await reject(key, watch.running ?? 'validate', error, context);
    return { ...rowOf(undefined, artifact, 'rejected', watch), ...record };
  }
}

async function proveAndPublish(
  { resolved, bucket, lock, steps }: Task,
  artifact: OpenedArtifact,
  digest: TreeDigest,
  staging: Staging,
  watch: Stopwatch,
  context: Context,
): Promise<Manifest> {
  const place = (one: Candidate) => provePlacement(one, context);
  const parity = (one: Candidate) => proveParity(one, context);
  const candidate = { resolved, bucket, model: artifact.model, temp: staging.temp };
  const verdict: Verdict = {
    toolchain: resolved.order.toolchain,
    placement: await watch.stage(place, candidate),
    parity: await watch.stage(parity, candidate),
    artifactSha256: digest.v1,
    coremltools: artifact.manifest.platform.coremltools ?? 'unknown',
    at: context.now(),
  };
  const fields = evidenceFields(verdict);
  const record = parseJson(await readText(join(artifact.folder, MANIFEST))) as JsonObject;
  const text = `${stringifyJson(withEvidence(record, artifact.manifest, fields), 1)}\n`;
  const publish = async (staged: string): Promise<void> => {
    await restage(artifact, digest, text, staged, steps);
    await lock.assertHeld();
    await commitArtifact(context.root, artifact.key, staged, { replace: true, steps, now: context.now });
  };
  await watch.stage(publish, join(staging.path, 'buckets', `L${bucket}`));
  return { ...artifact.manifest, ...fields };
}

function rowOf(
  manifest: Manifest | undefined,
  { key, folder, manifest: before }: OpenedArtifact,
  outcome: ValidateRow['outcome'],
  watch: Stopwatch,
): ValidateRow {
  return {
    bucket: key.bucket,
    outcome,
    path: folder,
    artifact_sha256: before.integrity.artifact_sha256,
    placement: manifest?.placement ?? null,
    load_probe: manifest?.evidence?.load_probe ?? null,
    rows: manifest?.parity.rows ?? null,
    prob_max_abs: manifest?.parity.prob_max_abs ?? null,
    seconds: watch.bucketSeconds(),
  };
}
