import { checkListed, type HubAccess, type OpenedIndex } from '../registry/index/repository.js';
import { bucketsIn, nothingPublished, selectEntries } from '../registry/index/select.js';
import { locateArtifact } from '../registry/locate.js';
import type { BuildLock } from '../registry/lock.js';
import type { ModelSpec } from '../registry/models.js';
import { type ArtifactKey, artifactFolder } from '../registry/paths.js';
import { findProblem, moveToQuarantine } from '../registry/quarantine.js';
import { readArtifact } from '../registry/read.js';
import { isTrusted } from '../registry/signature/policy.js';
import type { Staging } from '../registry/staging.js';
import type { Manifest, SignatureIdentity } from '../schemas/generated/types.js';
import type { Context } from './events.js';
import { proveAndRegister } from './fetch-prove.js';
import { BUILD_HINT, checkProvable, openSource, profileChoice, type Source } from './fetch-source.js';
import { explainHub } from './hub.js';
import { lockArtifact } from './lock.js';
import { profileText, servesHere } from './profile.js';
import { authenticate, type Trust } from './stages/authenticate.js';
import { download, sourceOf } from './stages/download.js';
import type { Unpacked } from './stages/unpack.js';
import { inStaging } from './staging.js';
import { Stopwatch } from './stopwatch.js';
import type { Toolchain } from './toolchain/toolchain.js';

/** What a fetch of one model was asked for. */
export interface FetchOrder extends Source {
  readonly model: ModelSpec;
  /** Undefined: all that the index has for the profile. */
  readonly buckets: readonly number[] | undefined;
  /** Slug of the profile in place of this machine's. */
  readonly profile?: string;
  /** Also fetch what is registered, whole and of use here, and take its place. */
  readonly force: boolean;
  /** Also take what was proven on another kind of machine: `profile`'s, or portable ones. */
  readonly revalidate?: boolean;
  /** By whom every archive has to be signed; what is registered without that is fetched again. */
  readonly trust?: Trust;
  /** A local checkpoint folder in place of the pinned one. */
  readonly checkpoint?: string;
  readonly toolchain: Toolchain;
}

/** What became of one bucket. */
export interface FetchRow {
  readonly bucket: number;
  /** `withheld`: right by itself, but another bucket of the set was refused. */
  readonly outcome: 'registered' | 'already-registered' | 'rejected' | 'withheld';
  /** The registered folder, or the rejected record. */
  readonly path: string;
  readonly source?: string;
  readonly artifact_sha256?: string;
  readonly bytes?: number;
  /** Who signed the archive, where that was required. */
  readonly signature?: SignatureIdentity;
  readonly code?: string;
  readonly reason?: string;
}

export interface FetchReport {
  readonly model: string;
  readonly repo: string;
  /** The commit that was read; null when everything was there already. */
  readonly commit: string | null;
  readonly rows: readonly FetchRow[];
  readonly seconds: number;
}

/**
 * Index -> select -> download -> resolve -> place and parity of all -> registered, all or none (protocol §12.3). What is
 * registered, passes a full verification and serves here stays without `force`; what fails the verification goes to
 * quarantine first. Throws HubError, IndexError, ArchiveError, Artifact*Error, StoreError; nothing is registered then.
 */
export async function fetchArtifacts(order: FetchOrder, hub: HubAccess, context: Context): Promise<FetchReport> {
  const watch = new Stopwatch(context);
  const early = order.buckets === undefined ? await openSource(order, hub, context) : undefined;
  const wanted = order.buckets ?? everyBucket(early!, order);
  const locks = await lockAll(order.model, wanted, context);
  try {
    const { rows, missing } = await inspect(order, wanted, context);
    const report = (opened?: OpenedIndex, more: readonly FetchRow[] = []): FetchReport => ({
      model: order.model.name,
      repo: order.repo,
      commit: opened?.place.revision ?? null,
      rows: [...rows, ...more].sort((a, b) => a.bucket - b.bucket),
      seconds: watch.total(),
    });
    if (missing.length === 0) return report(early);
    const opened = early ?? (await openSource(order, hub, context));
    const got = await inStaging('fetch', watch, context, (staging) =>
      fetchSet({ order, opened, hub, missing, locks }, staging, watch, context),
    );
    return report(opened, got);
  } finally {
    for (const lock of locks) await lock.release();
  }
}

/** All that the index has for the profile. Throws ArtifactMissingError when that is nothing. */
function everyBucket({ index, where }: OpenedIndex, order: FetchOrder): number[] {
  const choice = profileChoice(order);
  const buckets = bucketsIn(index, order.model, choice);
  if (buckets.length === 0) throw nothingPublished(index, where, choice, order.model);
  return buckets;
}

/** A bucket that is to be fetched; `replace` when a whole artifact stands there. */
interface Missing {
  readonly bucket: number;
  readonly replace: boolean;
}

/** Rows of what may stay, and what has to be fetched. A corrupt copy is in quarantine afterwards. */
async function inspect(order: FetchOrder, buckets: readonly number[], context: Context) {
  const { model, force } = order;
  const { root, now, emit } = context;
  const rows: FetchRow[] = [];
  const missing: Missing[] = [];
  for (const bucket of buckets) {
    const key = { model, bucket };
    const folder = await locateArtifact(root, key);
    const problem = folder === undefined ? undefined : await findProblem(root, key);
    const row = folder === undefined || problem || force ? undefined : await keptRow(key, folder, order, context);
    if (row) {
      rows.push(row);
      continue;
    }
    if (problem) {
      const name = await moveToQuarantine(root, key, { reason: problem.message, now: now() });
      if (name) emit({ kind: 'skipped', bucket, reason: `${problem.code}, now in quarantine as ${name}` });
    }
    missing.push({ bucket, replace: folder !== undefined && !problem });
  }
  return { rows, missing };
}

/** The row of a whole artifact that may stay: it serves here, and who signed it is trusted where that is asked for. */
async function keptRow(
  key: ArtifactKey,
  folder: string,
  { toolchain, trust }: FetchOrder,
  { emit }: Context,
): Promise<FetchRow | undefined> {
  const { bucket } = key;
  const { manifest } = await readArtifact(key, folder);
  if (!servesHere(manifest, toolchain)) {
    emit({
      kind: 'skipped',
      bucket,
      reason: `what is registered was proven on ${profileText(manifest)}; looking for another`,
    });
    return undefined;
  }
  const row: FetchRow = { bucket, outcome: 'already-registered', path: folder };
  if (!trust) return row;
  const signature = signerOf(manifest, trust);
  return signature && { ...row, signature };
}

/** The trusted signer that a registered artifact's manifest names; undefined where it names none. */
function signerOf({ imported }: Manifest, { policy }: Trust): SignatureIdentity | undefined {
  const { signature } = (imported ?? {}) as { signature?: SignatureIdentity };
  if (!signature || !isTrusted(policy, signature)) return undefined;
  return { identity: signature.identity, issuer: signature.issuer };
}

async function lockAll(model: ModelSpec, buckets: readonly number[], context: Context): Promise<BuildLock[]> {
  const locks: BuildLock[] = [];
  try {
    for (const bucket of buckets) locks.push(await lockArtifact({ model, bucket }, context));
    return locks;
  } catch (error) {
    for (const lock of locks) await lock.release();
    throw error;
  }
}

interface SetOrder {
  readonly order: FetchOrder;
  readonly opened: OpenedIndex;
  readonly hub: HubAccess;
  readonly missing: readonly Missing[];
  readonly locks: readonly BuildLock[];
}

async function fetchSet(set: SetOrder, staging: Staging, watch: Stopwatch, context: Context): Promise<FetchRow[]> {
  const { order, opened, hub, missing, locks } = set;
  const { model, toolchain, checkpoint, trust, revalidate = false } = order;
  const buckets = missing.map(({ bucket }) => bucket);
  const entries = selectEntries(opened.index, opened.where, model, buckets, profileChoice(order));
  for (const entry of entries) {
    if (!revalidate) checkProvable(entry, toolchain, opened.where);
    checkListed(entry, opened);
  }
  const more = checkpoint === undefined ? {} : { checkpoint };
  const bring = async () => {
    const signed = trust && (await watch.stage(authenticate, { entries, opened, hub, trust }));
    const wanted = { model, entries, opened, hub, toolchain, revalidate, ...more, ...(signed ? { signed } : {}) };
    return watch.stage(download, { order: wanted, staging });
  };
  const unpacked = await bring().catch((error: unknown) => {
    throw explainHub(error, `prebuilt artifacts of ${order.repo} at ${opened.place.revision}`, BUILD_HINT);
  });
  const staged = unpacked.map(({ key, folder }, i) => ({ key, folder, replace: missing[i]!.replace }));
  const build = { model, buckets, force: true, toolchain, ...more };
  const result = await proveAndRegister({ all: unpacked, staged, build, locks }, staging, watch, context);
  const sources = entries.map((entry) => sourceOf(opened, entry));
  return unpacked.map((one, i) => {
    if ('outcomes' in result) return rowOf(one, sources[i]!, result.outcomes[i]!, context);
    if (one !== result.refused) return rowOf(one, sources[i]!, 'withheld', context);
    return { ...rowOf(one, sources[i]!, 'rejected', context), ...result.record };
  });
}

function rowOf(
  { order, key, archive }: Unpacked,
  source: string,
  outcome: FetchRow['outcome'],
  { root }: Context,
): FetchRow {
  const { v1, bytes } = archive.tree;
  const { signature: signer } = order;
  const signature = signer && { signature: { identity: signer.identity, issuer: signer.issuer } };
  return {
    bucket: key.bucket,
    outcome,
    path: artifactFolder(root, key),
    source,
    artifact_sha256: v1,
    bytes,
    ...signature,
  };
}
