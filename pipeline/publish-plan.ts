import { readFile } from 'node:fs/promises';
import { HubError } from '../registry/hub/errors.js';
import { hubPlace } from '../registry/hub/layout.js';
import { fetchListing, type HubFile } from '../registry/hub/listing.js';
import { headCommit } from '../registry/hub/revision.js';
import { INDEX, mergeIndex, says } from '../registry/index/prebuilt.js';
import { bringFile, type HubAccess, openIndex, staleEntry } from '../registry/index/repository.js';
import type { ArtifactKey } from '../registry/paths.js';
import { bundlePath, isBundleSize } from '../registry/signature/file.js';
import { statementOf, statementText } from '../registry/signature/statement.js';
import type { PrebuiltIndex } from '../schemas/generated/types.js';
import { PublishError } from './errors.js';
import type { Packed } from './stages/pack.js';
import type { Sign } from './stages/sign.js';

/** What is to be published, and where. */
export interface PublishOrder {
  readonly repo: string;
  readonly branch: string;
  readonly keys: readonly ArtifactKey[];
  /** Make the repository or branch where it is missing. */
  readonly create: boolean;
  readonly isPrivate: boolean;
  readonly tag?: string;
  readonly dryRun: boolean;
  /** Without it nothing is signed, and the signature of an archive that is replaced goes. */
  readonly sign?: Sign;
}

/** What is done about one archive: its entry is new, takes the place of another, or is there already. */
export interface PublishRow {
  readonly model: string;
  readonly bucket: number;
  readonly action: 'add' | 'replace' | 'keep';
  readonly path: string;
  readonly bytes: number;
  readonly archive_sha256: string;
  readonly artifact_sha256: string;
  /** What is done about the bundle beside it; null where there is none. */
  readonly signature: 'add' | 'keep' | 'remove' | null;
}

/** The branch as it was read, at one commit. */
export interface Head {
  readonly commit: string | null;
  readonly listing: readonly HubFile[];
  readonly index: PrebuiltIndex | undefined;
}

/** What one commit on top of a head has to change. */
export interface Plan {
  readonly head: Head;
  readonly index: PrebuiltIndex;
  readonly rows: readonly PublishRow[];
  /** Archives that the head does not have at their paths. */
  readonly uploads: readonly Packed[];
  /** Archives that are to be signed. */
  readonly unsigned: readonly Packed[];
  /** Paths of bundles that are about archives which are replaced. */
  readonly orphans: readonly string[];
  readonly isDone: boolean;
}

/** The head of the branch, its files and index; all empty where the repository or branch is still to be made. */
export async function readHead(order: PublishOrder, hub: HubAccess): Promise<Head> {
  const { repo, branch, create } = order;
  try {
    const commit = await headCommit(hub.transport, repo, branch);
    const listing = await fetchListing(hub.transport, { repo, revision: commit });
    const hasIndex = listing.some(({ path }) => path === INDEX);
    return { commit, listing, index: hasIndex ? (await openIndex(hub, repo, commit)).index : undefined };
  } catch (error) {
    if (!(error instanceof HubError) || error.code !== 'HUB_NOT_FOUND') throw error;
    if (create) return { commit: null, listing: [], index: undefined };
    throw new PublishError('REPO_MISSING', `there is no ${repo} with a branch ${branch}`, {
      where: error.where ?? repo,
      found: error.found,
      hint: 'add --create to make it',
      cause: error,
    });
  }
}

/**
 * Digests of the archives whose own statement the head has in a bundle already, whoever signed it; undefined when nothing
 * is to be signed. Throws HubError.
 */
export async function readStated(
  { repo, sign }: PublishOrder,
  { commit, listing }: Head,
  packed: readonly Packed[],
  { transport, cacheDir }: HubAccess,
): Promise<ReadonlySet<string> | undefined> {
  if (!sign) return undefined;
  const { payloadOf } = await import('../registry/signature/bundle.js');
  const stated = new Set<string>();
  for (const { entry, manifest, sha256 } of packed) {
    const file = listing.find(({ path }) => path === bundlePath(entry.path));
    if (!file || !isBundleSize(file.size)) continue;
    const bytes = await readFile(await bringFile(transport, hubPlace(cacheDir, { repo, revision: commit! }), file));
    if (payloadOf(bytes) === statementText(statementOf(manifest, { sha256 }))) stated.add(sha256);
  }
  return stated;
}

/** What has to change so that the head has these archives, their entries and, with `stated`, their signatures. */
export function makePlan(
  head: Head,
  packed: readonly Packed[],
  now: Date,
  stated: ReadonlySet<string> | undefined,
): Plan {
  const entries = packed.map(({ entry }) => entry);
  const index = mergeIndex(head.index, entries, now);
  const uploads = packed.filter(({ entry }) => staleEntry(entry, head.listing) !== undefined);
  const unsigned = stated ? packed.filter(({ sha256 }) => !stated.has(sha256)) : [];
  const isListed = (bundle: string): boolean => head.listing.some(({ path }) => path === bundle);
  const orphans = stated ? [] : uploads.map(({ entry }) => bundlePath(entry.path)).filter(isListed);
  const rows = packed.map((one): PublishRow => {
    const { key, entry } = one;
    const before = head.index?.artifacts.find(({ path }) => path === entry.path);
    const { path, bytes, archive_sha256, artifact_sha256 } = entry;
    const action = says(before, entry) ? 'keep' : before ? 'replace' : 'add';
    const bundle = bundlePath(path);
    const kept = orphans.includes(bundle) ? 'remove' : isListed(bundle) ? 'keep' : null;
    const signature = unsigned.includes(one) ? 'add' : kept;
    return {
      model: key.model.name,
      bucket: key.bucket,
      action,
      path,
      bytes,
      archive_sha256,
      artifact_sha256,
      signature,
    };
  });
  const isDone = index === head.index && uploads.length === 0 && unsigned.length === 0;
  return { head, index, rows, uploads, unsigned, orphans, isDone };
}

/** Entries of others whose archives are not there. */
export function danglingPaths({ index, head, uploads }: Plan): string[] {
  const uploaded = new Set(uploads.map(({ entry }) => entry.path));
  return index.artifacts
    .filter((entry) => !uploaded.has(entry.path) && staleEntry(entry, head.listing) !== undefined)
    .map(({ path }) => path);
}

/** The commit's message. */
export function messageOf(rows: readonly PublishRow[]): string {
  const changed = rows.filter(({ action }) => action !== 'keep');
  const names = (changed.length > 0 ? changed : rows).map(({ model, bucket }) => `${model} L${bucket}`);
  return `Publish ${names.slice(0, 12).join(', ')}${names.length > 12 ? ` and ${names.length - 12} more` : ''}`;
}
