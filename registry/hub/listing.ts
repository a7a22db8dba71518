import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeFolder, writeFileDurably } from '../durable.js';
import type { ContentDigest } from './digest.js';
import { HubError } from './errors.js';
import type { HubPlace, HubRevision } from './layout.js';
import { displayUrl } from './reply.js';
import type { HubTransport } from './transport.js';

/** One file of a commit. */
export interface HubFile {
  readonly path: string;
  readonly size: number;
  /** Git's SHA-1 of the blob; for an LFS file, of its pointer. */
  readonly blobId: string;
  /** SHA-256 of the content of an LFS file. */
  readonly lfsSha256?: string;
  readonly xetHash?: string;
}

const MAX_PAGE_BYTES = 16 << 20;
const MAX_PAGES = 100;
const RECORD_VERSION = 1;

/** Name of the file's content in the cache: the digest by which it is checked. */
export const contentName = (file: HubFile): string => file.lfsSha256 ?? file.blobId;

export const contentDigest = (file: HubFile): ContentDigest =>
  file.lfsSha256 === undefined
    ? { algorithm: 'git-sha1', hex: file.blobId }
    : { algorithm: 'sha256', hex: file.lfsSha256 };

/**
 * All files of a commit, from the hub.
 *
 * @throws HubError from the transport, or HUB_LISTING for a listing that is not valid
 */
export async function fetchListing(transport: HubTransport, of: HubRevision): Promise<HubFile[]> {
  const files: HubFile[] = [];
  const segments = ['api', 'models', ...of.repo.split('/'), 'tree', of.revision];
  let url: URL | undefined = transport.url(segments, '?recursive=true');
  for (let page = 0; url; page++) {
    const where = displayUrl(url);
    if (page >= MAX_PAGES) throw invalid(where, `at most ${MAX_PAGES} pages`, 'more');
    const { value, next }: { value: unknown; next?: URL } = await transport.json(url, MAX_PAGE_BYTES);
    if (!Array.isArray(value)) throw invalid(where, 'a list', typeof value);
    for (const entry of value as unknown[]) {
      if (isRecord(entry) && entry.type === 'file') files.push(parseEntry(entry, where));
    }
    url = next;
  }
  const paths = new Set(files.map((file) => file.path));
  if (paths.size !== files.length) throw invalid(displayUrl(transport.url(segments)), 'each path once', 'a path twice');
  return files;
}

function parseEntry(entry: Record<string, unknown>, where: string): HubFile {
  const { path, size, oid, xetHash } = entry;
  const lfs = isRecord(entry.lfs) ? entry.lfs : undefined;
  const file = {
    path,
    size: lfs?.size ?? size,
    blobId: oid,
    ...(lfs ? { lfsSha256: lfs.oid } : {}),
    ...(isHex(xetHash, 64) ? { xetHash } : {}),
  };
  if (isHubFile(file)) return file;
  const found = JSON.stringify(entry).slice(0, 200);
  throw invalid(where, 'a file with path, size and oid, and a sha256 as oid of lfs', found);
}

/**
 * The list of files that an earlier download of this commit left, ours or huggingface_hub's. Undefined when there is
 * none, or none that can be used: then the hub is asked.
 */
export async function readListing(place: HubPlace): Promise<HubFile[] | undefined> {
  const text = await readFile(place.listing, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  let record: unknown;
  try {
    record = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(record) || record.format_version !== RECORD_VERSION || !isRecord(record.files)) return undefined;
  const files = Object.entries(record.files).map(([path, entry]) => {
    const { size, blob_id: blobId, lfs_sha256, xet_hash } = isRecord(entry) ? entry : {};
    return {
      path,
      size,
      blobId,
      ...(lfs_sha256 == null ? {} : { lfsSha256: lfs_sha256 }),
      ...(xet_hash == null ? {} : { xetHash: xet_hash }),
    };
  });
  return files.every(isHubFile) ? files : undefined;
}

/** Keeps the list of files beside the snapshot, as huggingface_hub does. It must be the whole list of the commit. */
export async function writeListing(place: HubPlace, files: readonly HubFile[]): Promise<void> {
  const sorted = [...files].sort((a, b) => (a.path < b.path ? -1 : 1));
  const entries = sorted.map(({ path, size, blobId, lfsSha256, xetHash }) => {
    const lfs = lfsSha256 === undefined ? {} : { lfs_sha256: lfsSha256, lfs_size: size };
    const xet = xetHash === undefined ? {} : { xet_hash: xetHash };
    return [path, { size, blob_id: blobId, ...lfs, ...xet }];
  });
  await makeFolder(dirname(place.listing));
  const record = { format_version: RECORD_VERSION, files: Object.fromEntries(entries) };
  await writeFileDurably(place.listing, JSON.stringify(record, undefined, 1));
}

function isHubFile(file: Record<keyof HubFile, unknown> | Partial<Record<keyof HubFile, unknown>>): file is HubFile {
  const { path, size, blobId, lfsSha256, xetHash } = file;
  const named = typeof path === 'string' && path !== '' && path.length <= 4096;
  const sized = typeof size === 'number' && Number.isSafeInteger(size) && size >= 0;
  const optional = (value: unknown) => value === undefined || isHex(value, 64);
  return named && sized && isHex(blobId, 40) && optional(lfsSha256) && optional(xetHash);
}

const isHex = (value: unknown, digits: number): value is string =>
  typeof value === 'string' && value.length === digits && /^[0-9a-f]+$/.test(value);

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function invalid(where: string, expected: string, found: string): HubError {
  return new HubError('HUB_LISTING', `the hub's list of files is not valid: expected ${expected}`, {
    where,
    expected,
    found,
    hint: 'check the endpoint (HF_ENDPOINT)',
  });
}
