import { join } from 'node:path';
import { ArtifactIntegrityError } from '../../registry/errors.js';
import { inParallel } from '../../registry/hub/parallel.js';
import { unpackPublished } from '../../registry/index/archive.js';
import type { HubAccess, OpenedIndex } from '../../registry/index/repository.js';
import type { ModelSpec } from '../../registry/models.js';
import type { ArtifactKey } from '../../registry/paths.js';
import { bundlePath } from '../../registry/signature/file.js';
import { checkManifestStated } from '../../registry/signature/statement.js';
import type { Verified } from '../../registry/signature/verify.js';
import type { Staging } from '../../registry/staging.js';
import type { IndexEntry, Manifest } from '../../schemas/generated/types.js';
import type { Context } from '../events.js';
import type { Toolchain } from '../toolchain/toolchain.js';
import { checkClaim, type ImportOrder, type Unpacked, writeManifest } from './unpack.js';

/** Archives of one model that the index names, and what they are fetched for. */
export interface DownloadOrder {
  readonly model: ModelSpec;
  readonly entries: readonly IndexEntry[];
  readonly opened: OpenedIndex;
  readonly hub: HubAccess;
  /** Signed statements by archive path, where signatures are required: then each archive must say what its own does. */
  readonly signed?: ReadonlyMap<string, Verified>;
  readonly checkpoint?: string;
  readonly revalidate: boolean;
  readonly toolchain: Toolchain;
}

/** Where an archive comes from, as the manifest tells it. */
export const sourceOf = ({ place }: OpenedIndex, { path, archive_sha256 }: IndexEntry): string =>
  `hf://${place.repo}@${place.revision}/${path}#sha256=${archive_sha256}`;

/** All archives into staging, each in one pass, a few at a time; none is trusted before its digest was right. */
export async function download(
  { order, staging }: { order: DownloadOrder; staging: Staging },
  context: Context,
): Promise<Unpacked[]> {
  const { entries, model } = order;
  const total = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  const received = new Map<string, number>();
  const unpacked = new Map<number, Unpacked>();
  await inParallel(entries, async (entry) => {
    const onBytes = (bytes: number): void => {
      received.set(entry.path, bytes);
      const done = [...received.values()].reduce((sum, one) => sum + one);
      context.emit({ kind: 'progress', label: `fetching ${model.name}`, done, total });
    };
    unpacked.set(entry.length, await fetchOne(order, entry, staging, onBytes, context));
  });
  return entries.map(({ length }) => unpacked.get(length)!);
}

async function fetchOne(
  order: DownloadOrder,
  entry: IndexEntry,
  staging: Staging,
  onBytes: (received: number) => void,
  { signal, now }: Context,
): Promise<Unpacked> {
  const { model, opened, hub, signed, checkpoint, toolchain, revalidate } = order;
  const verified = signed?.get(entry.path);
  const claim: ImportOrder = {
    file: `${opened.place.repo}: ${entry.path}`,
    from: sourceOf(opened, entry),
    force: true,
    revalidate,
    sha256: entry.archive_sha256,
    expect: { model: model.name, bucket: entry.length },
    toolchain,
    ...(verified === undefined ? {} : { signature: verified.signer }),
    ...(checkpoint === undefined ? {} : { checkpoint }),
  };
  const folder = join(staging.path, 'buckets', `L${entry.length}`);
  let key: ArtifactKey | undefined;
  const onManifest = (manifest: Manifest): void => {
    key = checkClaim(manifest, claim);
    checkEntry(manifest, entry, claim.file);
    const archive = { sha256: entry.archive_sha256 };
    if (verified) checkManifestStated(verified.statement, manifest, archive, bundlePath(claim.file));
  };
  const { transport } = hub;
  const what = { entry, opened, transport, into: folder, onManifest, onBytes, signal, now: now() };
  const archive = await unpackPublished(what);
  await writeManifest(folder, archive);
  return { order: claim, key: key!, archive, folder };
}

/** The archive must hold what its index entry says (fault A14). */
function checkEntry({ integrity }: Manifest, entry: IndexEntry, where: string): void {
  if (integrity.artifact_sha256 === entry.artifact_sha256) return;
  throw new ArtifactIntegrityError('TREE_MISMATCH', 'the archive holds another artifact than the index says', {
    where,
    expected: entry.artifact_sha256,
    found: integrity.artifact_sha256,
    hint: 'tell its publisher, or read another commit with --revision',
  });
}
