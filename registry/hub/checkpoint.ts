import { makeFolder } from '../durable.js';
import type { Environment } from '../paths.js';
import { CHECKPOINT_FILES, type CheckpointFile, isRequired, WEIGHTS } from './checkpoint-files.js';
import type { ContentDigest } from './digest.js';
import { downloadFile } from './download.js';
import { HubError } from './errors.js';
import { type HubFetch, hubFetch } from './fetch.js';
import { blobPath, type HubPlace, type HubRevision, hubPlace } from './layout.js';
import { contentDigest, contentName, fetchListing, type HubFile, readListing, writeListing } from './listing.js';
import { inParallel } from './parallel.js';
import { systemClock } from './retry.js';
import { type HubOverrides, hubSettings } from './settings.js';
import { checkCached, hasContent, linkContent, removeEmptyFolder, sweepAbandoned } from './snapshot.js';
import { HubTransport, type TransportOptions } from './transport.js';

/** A pinned checkpoint and how to get it. Options go before the environment's HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE. */
export interface CheckpointOrder extends HubRevision, HubOverrides {
  readonly weightsSha256: string;
  /** Folder of the Hugging Face hub cache. */
  readonly cacheDir: string;
  readonly env?: Environment;
  readonly fetch?: HubFetch;
  /** Told the bytes that came and all bytes that have to come, over the files that are downloaded. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
  /** Retries, waits and the clock. */
  readonly timing?: Omit<TransportOptions, 'fetch' | 'signal'>;
}

export interface FetchedCheckpoint {
  /** The snapshot folder. Each of its checkpoint files was verified by this call. */
  readonly root: string;
  /** The files that this call downloaded; empty when the cache had them all. */
  readonly downloaded: readonly CheckpointFile[];
}

/** A file that the cache doesn't have as it should be; `file` is what the commit lists, when that is known. */
interface Gap {
  readonly path: CheckpointFile;
  readonly file: HubFile | undefined;
  readonly state: string;
}

/**
 * The folder of a pinned checkpoint in the Hugging Face cache, downloaded as far as it is not there. Contents are
 * verified on every call: the weights by the pinned SHA-256, the others by the digests that the commit lists. What is
 * right is kept, what is wrong is replaced. When all is there no socket is opened.
 *
 * @throws HubError; OFFLINE and HUB_UNREACHABLE name the repository, the revision and the way without a network
 */
export async function fetchCheckpoint(order: CheckpointOrder): Promise<FetchedCheckpoint> {
  const place = hubPlace(order.cacheDir, order);
  let gaps: Gap[] = [];
  try {
    gaps = await findGaps(place, await keptListing(place, order), order);
    if (gaps.length === 0) return { root: place.snapshot, downloaded: [] };
    const transport = await openTransport(order);
    const listing = await fetchListing(transport, order);
    checkListing(listing, order);
    await writeListing(place, listing);
    gaps = await findGaps(place, listing, order);
    await fillGaps(transport, place, gaps, order);
    return { root: place.snapshot, downloaded: gaps.map(({ path }) => path) };
  } catch (error) {
    order.signal?.throwIfAborted();
    throw explain(error, order, gaps);
  }
}

/** The list of files that an earlier download left, if it fits the pin. */
async function keptListing(place: HubPlace, order: CheckpointOrder): Promise<HubFile[] | undefined> {
  const listing = await readListing(place);
  if (!listing) return undefined;
  try {
    checkListing(listing, order);
    return listing;
  } catch {
    return undefined;
  }
}

/** Refuses a commit that lacks a required file or has other weights than the pinned ones. */
function checkListing(listing: readonly HubFile[], order: CheckpointOrder): void {
  const paths = new Set(listing.map(({ path }) => path));
  const missing = CHECKPOINT_FILES.filter((path) => isRequired(path) && !paths.has(path));
  if (missing.length > 0) {
    throw new HubError('HUB_FILE_MISSING', `the commit has no ${missing.join(', ')}`, {
      expected: 'the files of a checkpoint',
      found: `${listing.length} files without ${missing.join(', ')}`,
    });
  }
  const listed = listing.find(({ path }) => path === WEIGHTS)?.lfsSha256;
  if (listed === undefined || listed === order.weightsSha256) return;
  throw new HubError('HUB_PIN', `the commit lists other weights than the pinned ones`, {
    where: WEIGHTS,
    expected: order.weightsSha256,
    found: listed,
  });
}

/**
 * What is missing or wrong in the snapshot, after linking what the cache has under its digest. Without a listing, an
 * optional file that is not there is no gap: only a download could tell whether the commit has it.
 */
async function findGaps(
  place: HubPlace,
  listing: readonly HubFile[] | undefined,
  order: CheckpointOrder,
): Promise<Gap[]> {
  const gaps: Gap[] = [];
  for (const path of CHECKPOINT_FILES) {
    const file = listing?.find((one) => one.path === path);
    if (listing && !file) continue;
    const state = await checkCached(place, path, digestsOf(path, file, order));
    if (state === 'right' || (state === 'missing' && !listing && !isRequired(path))) continue;
    if (file && (await hasContent(place, contentName(file), digestsOf(path, file, order)!))) {
      await linkContent(place, path, contentName(file));
    } else {
      gaps.push({ path, file, state });
    }
  }
  return gaps;
}

/** What a file's content must hash to; undefined when neither the pin nor a listing says. */
function digestsOf(
  path: CheckpointFile,
  file: HubFile | undefined,
  order: CheckpointOrder,
): ContentDigest[] | undefined {
  const pin: ContentDigest[] = path === WEIGHTS ? [{ algorithm: 'sha256', hex: order.weightsSha256 }] : [];
  if (!file) return pin.length > 0 ? pin : undefined;
  return file.lfsSha256 === undefined ? [contentDigest(file), ...pin] : [contentDigest(file)];
}

async function openTransport(order: CheckpointOrder): Promise<HubTransport> {
  const settings = hubSettings(order.env ?? {}, order);
  const fetch = order.fetch ?? (await hubFetch(settings.proxy));
  return new HubTransport(settings, { ...order.timing, fetch, ...(order.signal ? { signal: order.signal } : {}) });
}

async function fillGaps(transport: HubTransport, place: HubPlace, gaps: readonly Gap[], order: CheckpointOrder) {
  await makeFolder(place.blobs);
  await sweepAbandoned(place.blobs, (order.timing?.clock ?? systemClock).now());
  const total = gaps.reduce((sum, { file }) => sum + file!.size, 0);
  const received = new Map<string, number>();
  await inParallel(gaps, async ({ path, file }) => {
    const [size, name] = [file!.size, contentName(file!)];
    const url = transport.url([...order.repo.split('/'), 'resolve', order.revision, ...path.split('/')]);
    const target = blobPath(place, name);
    const expected = { size, digests: digestsOf(path, file, order)! };
    await removeEmptyFolder(target);
    await downloadFile(transport, url, target, expected, (bytes) => {
      received.set(path, bytes);
      order.onProgress?.(
        [...received.values()].reduce((sum, one) => sum + one),
        total,
      );
    });
    await linkContent(place, path, name);
  });
}

/** The error with what it was about and the way around the network. */
function explain(error: unknown, order: CheckpointOrder, gaps: readonly Gap[]): unknown {
  const lacking = gaps.map(({ path, state }) => `${path} ${state}`).join(', ');
  const what = `checkpoint ${order.repo} at ${order.revision}${lacking && ` (in the cache: ${lacking})`}`;
  const local = 'use a copy of the checkpoint with --checkpoint DIR';
  if (error instanceof HubError) return error.within(what, local);
  const { errno, code, path } = error as NodeJS.ErrnoException;
  if (typeof errno !== 'number') return error;
  return new HubError('HUB_CACHE', `${what}: the cache can't be used: ${code}`, {
    where: path ?? order.cacheDir,
    expected: 'a folder that can be read and written',
    found: code,
    hint: `set HF_HUB_CACHE to another folder, or ${local}`,
    cause: error,
  });
}
