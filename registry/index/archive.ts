import { mkdir, rm, stat } from 'node:fs/promises';
import type { IndexEntry, Manifest } from '../../schemas/generated/types.js';
import { ArchiveError } from '../archive/errors.js';
import { ArchiveReader, type ReadArchive, readArchive } from '../archive/read.js';
import { makeFolder } from '../durable.js';
import { fileHasDigests } from '../hub/digest.js';
import { downloadFile } from '../hub/download.js';
import { blobPath, pointerPath } from '../hub/layout.js';
import { linkContent, removeEmptyFolder, sweepAbandoned } from '../hub/snapshot.js';
import type { HubTransport } from '../hub/transport.js';
import { fileUrl, type OpenedIndex } from './repository.js';

export interface ArchiveOrder {
  readonly entry: IndexEntry;
  readonly opened: OpenedIndex;
  readonly transport: HubTransport;
  /** Folder that takes the model; it is emptied first. */
  readonly into: string;
  readonly onManifest: (manifest: Manifest) => void;
  readonly onBytes: (received: number) => void;
  readonly signal: AbortSignal;
  readonly now: Date;
}

/**
 * Unpacks an archive of the index: from the cache when it is there with the right digest, else from the hub, in one pass
 * through SHA-256, size, inflate and unpack while it is written into the cache. Throws HubError, ArchiveError,
 * Artifact*Error; what was unpacked by then is the caller's to remove.
 */
export async function unpackPublished(order: ArchiveOrder): Promise<ReadArchive> {
  const { entry, opened } = order;
  for (const path of [blobPath(opened.place, entry.archive_sha256), pointerPath(opened.place, entry.path)]) {
    const archive = await unpackCached(path, order);
    if (archive) return archive;
  }
  return unpackDownload(order);
}

/** Undefined when the cache does not hold the archive there, or other bytes under its name (fault F21). */
async function unpackCached(path: string, order: ArchiveOrder): Promise<ReadArchive | undefined> {
  const { entry, into, onManifest, signal } = order;
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile() || found.size !== entry.bytes) return undefined;
  await emptyFolder(into);
  try {
    return await readArchive(path, { into, onManifest, signal, sha256: entry.archive_sha256 });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ArchiveError && error.code === 'ARCHIVE_DIGEST') return undefined;
    const digest = { algorithm: 'sha256', hex: entry.archive_sha256 } as const;
    if (!(await fileHasDigests(path, [digest]).catch(() => false))) return undefined;
    throw error;
  }
}

async function unpackDownload(order: ArchiveOrder): Promise<ReadArchive> {
  const { entry, opened, transport, into, onManifest, now } = order;
  const { place } = opened;
  const target = blobPath(place, entry.archive_sha256);
  await makeFolder(place.blobs);
  await sweepAbandoned(place.blobs, now.getTime());
  await removeEmptyFolder(target);
  const url = fileUrl(transport, place, entry.path);
  const expected = { size: entry.bytes, digests: [{ algorithm: 'sha256', hex: entry.archive_sha256 } as const] };
  let reader: ArchiveReader | undefined;
  const open = async (): Promise<ArchiveReader> => {
    await emptyFolder(into);
    reader = new ArchiveReader(`${opened.place.repo}: ${entry.path}`, entry.bytes, { into, onManifest });
    return reader;
  };
  try {
    await downloadFile(transport, url, target, expected, order.onBytes, open);
    await linkContent(place, entry.path, entry.archive_sha256);
    await reader!.inflated();
    return reader!.finish({ sha256: entry.archive_sha256, bytes: entry.bytes });
  } finally {
    await reader?.close();
  }
}

async function emptyFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { recursive: true });
}
