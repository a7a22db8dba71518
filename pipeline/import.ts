import { basename, join } from 'node:path';
import { StoreError } from '../registry/errors.js';
import { readWhole } from '../registry/generation.js';
import { installArtifact } from '../registry/install.js';
import { locateArtifact } from '../registry/locate.js';
import { type ArtifactKey, artifactFolder, COMPILED, MANIFEST } from '../registry/paths.js';
import { checkTree, parseManifest, verifyTree } from '../registry/read.js';
import { recordRejection } from '../registry/rejected.js';
import { shareFiles } from '../registry/sharing.js';
import type { Staging } from '../registry/staging.js';
import { lookAt } from '../registry/stamps.js';
import { hashTree, type TreeDigest } from '../registry/tree.js';
import { checkProvenWith } from '../runtime/checkpoint-pins.js';
import { LayaError } from '../schemas/errors.js';
import type { Manifest } from '../schemas/generated/types.js';
import { fromPlain, type JsonObject, parseJson, stringifyJson } from '../schemas/json.js';
import type { Context } from './events.js';
import { evidenceFields, type Verdict, withEvidence, withEvidenceOf } from './evidence.js';
import { lockArtifact } from './lock.js';
import { rejectionRecord } from './manifest.js';
import { isProvenHere, servesHere } from './profile.js';
import { isRefusal } from './report.js';
import { type ParityRecord, proveParity } from './stages/parity.js';
import { type Candidate, provePlacement } from './stages/place.js';
import { resolve } from './stages/resolve.js';
import { type ImportOrder, type Unpacked, unpack } from './stages/unpack.js';
import { inStaging } from './staging.js';
import { Stopwatch } from './stopwatch.js';
import type { PlacementReport } from './toolchain/toolchain.js';

/** What became of one archive. */
export interface ImportReport {
  readonly file: string;
  readonly outcome: 'registered' | 'already-registered' | 'rejected';
  readonly model: string;
  readonly bucket: number;
  /** The registered folder, or the rejected record. */
  readonly path: string;
  readonly archive_sha256: string;
  readonly artifact_sha256: string;
  readonly bytes: number;
  readonly seconds: number;
  readonly code?: string;
  readonly reason?: string;
}

/**
 * Archive -> unpack -> resolve -> place -> parity -> registered. The archive is read once; the gates of this machine run
 * on its bytes, and only what they passed is registered, with an `imported` block that holds what they measured. A
 * gate's refusal leaves a record under `rejected/`.
 * Throws ArchiveError, Artifact*Error, StoreError; nothing is registered then, and what was registered stays.
 */
export async function importArchive(order: ImportOrder, context: Context): Promise<ImportReport> {
  const watch = new Stopwatch(context);
  return inStaging('import', watch, context, async (staging) => {
    const unpacked = await watch.stage(unpack, { order, staging });
    return install(unpacked, staging, watch, context);
  });
}

async function install(
  unpacked: Unpacked,
  staging: Staging,
  watch: Stopwatch,
  context: Context,
): Promise<ImportReport> {
  const { order, key, archive, folder } = unpacked;
  const lock = await lockArtifact(key, context);
  try {
    const standing = order.force ? undefined : await registeredHere(unpacked, context);
    if (standing && servesHere(standing, order.toolchain))
      return reportOf(unpacked, 'already-registered', watch, context);
    const resolved = await watch.stage(resolve, { ...order, model: key.model, buckets: [key.bucket] });
    checkProvenWith({ key, folder, model: folder, manifest: archive.manifest }, resolved.files);
    await shareFiles(context.root, key, join(folder, COMPILED), archive.tree);
    const { own: look } = await lookAt(join(folder, COMPILED));
    const prove = async (model: string): Promise<string> => {
      const candidate = { resolved, bucket: key.bucket, model, temp: staging.temp };
      const text = await proveImport(unpacked, candidate, look, watch, context);
      await lock.assertHeld();
      return standing ? keepEvidence(text, standing) : text;
    };
    const confirm = (model: string) =>
      confirmPlacement({ resolved, bucket: key.bucket, model, temp: staging.temp }, watch, context);
    const options = { replace: order.force || standing !== undefined, now: context.now, confirm };
    const outcome = await installArtifact(context.root, key, folder, prove, options);
    if (outcome === 'already-registered') await registeredHere(unpacked, context);
    return reportOf(unpacked, outcome, watch, context);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return {
      ...reportOf(unpacked, 'rejected', watch, context),
      ...(await reject(key, watch.running ?? 'import', error, context)),
    };
  } finally {
    await lock.release();
  }
}

/**
 * The manifest of the same artifact, when that is registered and whole. Throws StoreError TARGET_OCCUPIED when it is
 * another one.
 */
async function registeredHere({ key, archive }: Unpacked, { root }: Context): Promise<Manifest | undefined> {
  if ((await locateArtifact(root, key)) === undefined) return undefined;
  const registered = await readWhole(root, key, (artifact) => verifyTree(artifact)).catch((error: unknown) => {
    if (!(error instanceof LayaError)) throw error;
  });
  if (registered === undefined) return undefined;
  if (registered.value.v2 === archive.tree.v2) return registered.artifact.manifest;
  throw new StoreError('TARGET_OCCUPIED', `another artifact of ${key.model.name} L${key.bucket} is registered`, {
    where: registered.artifact.folder,
    expected: archive.tree.v1,
    found: registered.value.v1,
    hint: 'add --force to take its place once the gates have passed',
  });
}

/** A manifest's text with what another manifest says about the same bytes. */
export function keepEvidence(text: string, previous: Manifest): string {
  const record = withEvidenceOf(parseJson(text) as JsonObject, parseManifest(text, MANIFEST), previous);
  return `${stringifyJson(record, 1)}\n`;
}

/** Both gates on the model where it stands, and the manifest's text with what they measured. */
export async function proveImport(
  { order, archive }: Unpacked,
  candidate: Candidate,
  look: string,
  watch: Stopwatch,
  context: Context,
): Promise<string> {
  const place = (one: Candidate): Promise<PlacementReport> => provePlacement(one, context);
  const parity = (one: Candidate): Promise<ParityRecord> => proveParity(one, context);
  const placement = await watch.stage(place, candidate);
  const parityRecord = await watch.stage(parity, candidate);
  const digest = await unchanged(candidate.model, look, archive.tree);
  checkTree(archive.manifest, digest, candidate.model);
  const verdict: Verdict = {
    toolchain: order.toolchain,
    placement,
    parity: parityRecord,
    artifactSha256: digest.v1,
    coremltools: archive.manifest.platform.coremltools ?? 'unknown',
    at: context.now(),
  };
  const { failures: _none, ...figures } = parityRecord;
  const imported = {
    at: context.now().toISOString(),
    from: order.from ?? basename(order.file),
    archive_sha256: archive.sha256,
    ...(order.signature === undefined ? {} : { signature: order.signature }),
    platform: order.toolchain.platform(verdict.coremltools),
    placement,
    parity: figures,
    artifact_sha256_check: digest.v1,
  };
  const record = recordHere(archive, verdict);
  return `${stringifyJson(new Map(record).set('imported', fromPlain(imported)), 1)}\n`;
}

/** The placement gate at the registered path, on a model that was proven elsewhere, where that makes a difference. */
export async function confirmPlacement(candidate: Candidate, watch: Stopwatch, context: Context): Promise<void> {
  if (!candidate.resolved.order.toolchain.isPathBound) return;
  const place = (one: Candidate): Promise<PlacementReport> => provePlacement(one, context);
  await watch.stage(place, candidate);
}

/** The manifest as it came; what was proven elsewhere gets the evidence of this machine, which is what counts here. */
function recordHere({ record, manifest }: Unpacked['archive'], verdict: Verdict): JsonObject {
  if (isProvenHere(manifest, verdict.toolchain)) return record;
  return withEvidence(record, manifest, evidenceFields(verdict));
}

/** The hashes from unpacking, as long as no file looks changed since; otherwise those of the bytes that are there now. */
async function unchanged(model: string, before: string, unpacked: TreeDigest): Promise<TreeDigest> {
  return (await lookAt(model)).own === before ? unpacked : hashTree(model);
}

function reportOf(
  { order, key, archive }: Unpacked,
  outcome: ImportReport['outcome'],
  watch: Stopwatch,
  { root }: Context,
): ImportReport {
  return {
    file: order.file,
    outcome,
    model: key.model.name,
    bucket: key.bucket,
    path: artifactFolder(root, key),
    archive_sha256: archive.sha256,
    artifact_sha256: archive.tree.v1,
    bytes: archive.tree.bytes,
    seconds: watch.total(),
  };
}

/** A gate's refusal as a record on disk. */
export async function reject(key: ArtifactKey, stage: string, error: LayaError, { root, now, emit }: Context) {
  const facts = { ...key, createdAt: now() };
  const record = await recordRejection(root, facts, rejectionRecord(stage, error, facts));
  emit({ kind: 'rejected', bucket: key.bucket, record });
  return { path: record, code: error.code, reason: error.message };
}
