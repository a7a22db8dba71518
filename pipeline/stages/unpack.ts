import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ArchiveError } from '../../registry/archive/errors.js';
import { type ReadArchive, readArchive } from '../../registry/archive/read.js';
import { ArtifactRevisionError } from '../../registry/errors.js';
import { findModel } from '../../registry/models.js';
import { type ArtifactKey, MANIFEST } from '../../registry/paths.js';
import { checkManifest } from '../../registry/read.js';
import type { Signer } from '../../registry/signature/verify.js';
import type { Staging } from '../../registry/staging.js';
import type { Manifest } from '../../schemas/generated/types.js';
import { stringifyJson } from '../../schemas/json.js';
import type { Context } from '../events.js';
import { checkProfile } from '../profile.js';
import type { Toolchain } from '../toolchain/toolchain.js';

/** What an import was asked for. */
export interface ImportOrder {
  /** Path of the archive. */
  readonly file: string;
  readonly force: boolean;
  /** Also take what was proven on another kind of machine: the gates of this one give it evidence of its own. */
  readonly revalidate?: boolean;
  /** SHA-256 that the file must have. */
  readonly sha256?: string;
  /** The artifact that it must hold. */
  readonly expect?: { readonly model: string; readonly bucket: number };
  /** What the manifest is to say about where it came from; the file's name when absent. */
  readonly from?: string;
  /** Who signed it, once that was verified. */
  readonly signature?: Signer;
  /** A local checkpoint folder in place of the pinned one. */
  readonly checkpoint?: string;
  readonly toolchain: Toolchain;
}

/** An archive whose content lies in staging: its bytes are those of its manifest, and its gates can run here. */
export interface Unpacked {
  readonly order: ImportOrder;
  readonly key: ArtifactKey;
  readonly archive: ReadArchive;
  /** The staged artifact folder. */
  readonly folder: string;
}

/** The archive into staging, in one pass; what its manifest tells is judged as soon as it has been read. */
export async function unpack(
  { order, staging }: { order: ImportOrder; staging: Staging },
  context: Context,
): Promise<Unpacked> {
  const folder = join(staging.path, 'buckets', 'imported');
  await mkdir(folder, { recursive: true });
  let key: ArtifactKey | undefined;
  const archive = await readArchive(order.file, {
    signal: context.signal,
    into: folder,
    ...(order.sha256 === undefined ? {} : { sha256: order.sha256 }),
    onManifest: (manifest) => {
      key = checkClaim(manifest, order);
    },
  });
  await writeManifest(folder, archive);
  return { order, key: key!, archive, folder };
}

/** The manifest as it came, for the gates and for whoever looks into staging. */
export async function writeManifest(folder: string, { record }: ReadArchive): Promise<void> {
  await writeFile(join(folder, MANIFEST), `${stringifyJson(record, 1)}\n`, { flag: 'wx', mode: 0o644 });
}

/** Which artifact the manifest claims to be; refused unless it is one that this machine can prove. */
export function checkClaim(manifest: Manifest, order: ImportOrder): ArtifactKey {
  const { file, expect, toolchain } = order;
  const { source, artifact } = manifest;
  if (expect && (expect.model !== source.model || expect.bucket !== artifact.length))
    throw new ArchiveError('ARCHIVE_OTHER', `the archive holds ${source.model} L${artifact.length}`, {
      where: file,
      expected: `${expect.model} L${expect.bucket}`,
      found: `${source.model} L${artifact.length}`,
    });
  const model = findModel(source.model);
  if (!model.buckets.includes(artifact.length))
    throw new ArtifactRevisionError('SHAPE_MISMATCH', `L${artifact.length} is not offered for ${model.name}`, {
      where: `${file}: artifact.length`,
      expected: model.buckets,
      found: artifact.length,
    });
  const key = { model, bucket: artifact.length };
  checkManifest(key, manifest, file);
  if (!order.revalidate) checkProfile(manifest, toolchain, file);
  return key;
}
