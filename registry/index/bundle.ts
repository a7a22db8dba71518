import { readFile } from 'node:fs/promises';
import type { IndexEntry } from '../../schemas/generated/types.js';
import { fetchListing, type HubFile, readListing } from '../hub/listing.js';
import type { HubTransport } from '../hub/transport.js';
import { bundlePath, checkBundleSize, missingBundle } from '../signature/file.js';
import { bringFile, type OpenedIndex } from './repository.js';

/**
 * The bytes of the bundle beside an archive, from the same commit as the index; nothing in them is judged. Throws
 * SignatureError SIGNATURE_MISSING, or SIGNATURE_INVALID for one that is too large; HubError.
 */
export async function readBundle(transport: HubTransport, opened: OpenedIndex, entry: IndexEntry): Promise<Buffer> {
  const path = bundlePath(entry.path);
  const where = bundleWhere(opened, entry);
  const file = (await listingOf(transport, opened)).find((one) => one.path === path);
  if (!file) throw missingBundle(where);
  checkBundleSize(file.size, where);
  return readFile(await bringFile(transport, opened.place, file));
}

/** "owner/name@commit: path", for messages. */
export const bundleWhere = ({ place }: OpenedIndex, { path }: IndexEntry): string =>
  `${place.repo}@${place.revision}: ${bundlePath(path)}`;

const listingOf = async (transport: HubTransport, { listing, place }: OpenedIndex): Promise<readonly HubFile[]> =>
  listing ?? (await readListing(place)) ?? fetchListing(transport, place);
