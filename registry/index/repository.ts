import { readFile, stat } from 'node:fs/promises';
import type { IndexEntry, PrebuiltIndex } from '../../schemas/generated/types.js';
import { makeFolder } from '../durable.js';
import { downloadFile } from '../hub/download.js';
import { blobPath, type HubPlace, pointerPath } from '../hub/layout.js';
import { contentDigest, contentName, fetchListing, type HubFile, readListing, writeListing } from '../hub/listing.js';
import { placeOf } from '../hub/revision.js';
import { checkCached, hasContent, linkContent, removeEmptyFolder } from '../hub/snapshot.js';
import type { HubTransport } from '../hub/transport.js';
import { IndexError } from './errors.js';
import { INDEX, MAX_INDEX_BYTES, parseIndex } from './prebuilt.js';

/** Where prebuilt artifacts come from when nothing is said: this commit, whatever the branch is at. */
export const DEFAULT_REPO = 'tc3oliver/laya-apple-artifacts';
const DEFAULT_REVISION = '44a54765f89d434e9d85f401126cfee7d2059e7d';

/** The revision that is read when none is named. */
export const defaultRevision = (repo: string): string => (repo === DEFAULT_REPO ? DEFAULT_REVISION : 'main');

/** The hub, and the Hugging Face cache before it. */
export interface HubAccess {
  readonly transport: HubTransport;
  readonly cacheDir: string;
  readonly offline: boolean;
}

/** A repository of prebuilt artifacts at one commit; everything is read by that. */
export interface OpenedIndex {
  readonly place: HubPlace;
  readonly index: PrebuiltIndex;
  /** The commit's files, where they are known. */
  readonly listing: readonly HubFile[] | undefined;
  /** "owner/name@commit: index.json", for messages. */
  readonly where: string;
}

/**
 * Resolves a revision to a commit, once, and reads the index there: from the cache when it is in it, by its digest.
 * Throws HubError, IndexError.
 */
export async function openIndex(access: HubAccess, repo: string, revision: string): Promise<OpenedIndex> {
  const place = await placeOf(access.transport, access.cacheDir, repo, revision, access.offline);
  const where = `${repo}@${place.revision}: ${INDEX}`;
  const kept = await readListing(place);
  const found = kept?.find(({ path }) => path === INDEX);
  const isThere = await checkCached(place, INDEX, found && [contentDigest(found)]);
  const listing = isThere === 'right' ? kept : await downloadIndex(access.transport, place, where);
  const path = pointerPath(place, INDEX);
  checkSize((await stat(path)).size, where);
  return { place, index: parseIndex(await readFile(path), where), listing, where };
}

async function downloadIndex(transport: HubTransport, place: HubPlace, where: string): Promise<HubFile[]> {
  const listing = await fetchListing(transport, place);
  const file = listing.find(({ path }) => path === INDEX);
  if (!file)
    throw new IndexError('INDEX_MISSING', `${place.repo} has no ${INDEX} at this commit`, {
      where,
      found: listing.slice(0, 8).map(({ path }) => path),
      hint: 'name a repository that `publish` has written to',
    });
  checkSize(file.size, where);
  await writeListing(place, listing);
  await bringFile(transport, place, file);
  return listing;
}

/** Brings a file of the commit into the cache where it is not there, by its digest, and gives its path. Throws HubError. */
export async function bringFile(transport: HubTransport, place: HubPlace, file: HubFile): Promise<string> {
  const [name, digests] = [contentName(file), [contentDigest(file)]];
  if (!(await hasContent(place, name, digests))) {
    const url = fileUrl(transport, place, file.path);
    await makeFolder(place.blobs);
    await removeEmptyFolder(blobPath(place, name));
    await downloadFile(transport, url, blobPath(place, name), { size: file.size, digests });
  }
  await linkContent(place, file.path, name);
  return pointerPath(place, file.path);
}

function checkSize(bytes: number, where: string): void {
  if (bytes <= MAX_INDEX_BYTES) return;
  throw new IndexError('INDEX_TOO_LARGE', 'the index is too large to be one', {
    where,
    expected: `at most ${MAX_INDEX_BYTES} bytes`,
    found: bytes,
  });
}

/** URL of a file at a commit. */
export const fileUrl = (transport: HubTransport, { repo, revision }: HubPlace, path: string): URL =>
  transport.url([...repo.split('/'), 'resolve', revision, ...path.split('/')]);

/** What of an index its commit's list of files contradicts. */
export function staleEntry(entry: IndexEntry, listing: readonly HubFile[]): string | undefined {
  const file = listing.find(({ path }) => path === entry.path);
  if (!file) return 'the commit does not have it';
  if (file.size !== entry.bytes) return `it has ${file.size} bytes, not ${entry.bytes}`;
  if (file.lfsSha256 !== undefined && file.lfsSha256 !== entry.archive_sha256)
    return `its SHA-256 is ${file.lfsSha256}`;
  return undefined;
}

/** Throws IndexError INDEX_STALE when the commit does not have the entry's archive as the index says (faults F11, F12). */
export function checkListed(entry: IndexEntry, { listing, where }: OpenedIndex): void {
  const found = listing && staleEntry(entry, listing);
  if (!found) return;
  throw new IndexError('INDEX_STALE', 'the index and the archive come from different revisions', {
    where: `${where}: ${entry.path}`,
    expected: `${entry.bytes} bytes, ${entry.archive_sha256}`,
    found,
    hint: 'tell its publisher, or read another commit with --revision',
  });
}
