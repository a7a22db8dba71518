import { checkRecord, decodeText, parseRecord } from '../../schemas/door.js';
import { RecordError } from '../../schemas/errors.js';
import type { IndexEntry, Manifest, PrebuiltIndex } from '../../schemas/generated/types.js';
import { prebuiltIndex as validator } from '../../schemas/generated/validators.js';
import { recordText } from '../durable.js';
import type { ArtifactKey } from '../paths.js';
import { IndexError } from './errors.js';
import { profileSlug } from './profile.js';

/** The index's path in its repository. */
export const INDEX = 'index.json';
const FORMAT = 'laya-apple-prebuilt-index';
const VERSION = 1;
/** Upper bound of an index's text. */
export const MAX_INDEX_BYTES = 64 << 20;

/**
 * An index from its bytes. Throws IndexError INDEX_NEWER for a later version, INDEX_INVALID for anything that is not an
 * index whose every entry can be gone by.
 */
export function parseIndex(bytes: Uint8Array, where: string): PrebuiltIndex {
  const index = parseText(bytes, where);
  const paths = new Set<string>();
  for (const { path } of index.artifacts) {
    const folded = path.toLowerCase();
    if (paths.has(folded)) throw invalid(where, 'each path once', path);
    paths.add(folded);
  }
  return index;
}

function parseText(bytes: Uint8Array, where: string): PrebuiltIndex {
  let seen: unknown;
  const header = (value: unknown): boolean => {
    seen = value;
    return true;
  };
  try {
    const value = parseRecord<Record<string, unknown>>(decodeText(bytes, where), header, where);
    refuseNewer(value, where);
    return checkRecord<PrebuiltIndex>(value, validator, where);
  } catch (error) {
    if (!(error instanceof RecordError)) throw error;
    const found = seen === undefined ? error.message : firstFaults(error.found);
    throw invalid(where, `an index in format ${FORMAT} ${VERSION}`, found, error);
  }
}

function refuseNewer(value: unknown, where: string): void {
  const { format, format_version: version } = (value ?? {}) as Record<string, unknown>;
  if (format !== FORMAT || typeof version !== 'number' || !(version > VERSION)) return;
  throw new IndexError('INDEX_NEWER', `the index has format version ${version}, this release reads ${VERSION}`, {
    where,
    expected: VERSION,
    found: version,
    hint: 'upgrade laya-artifacts, or read an older commit with --revision',
  });
}

const firstFaults = (faults: unknown): unknown => (Array.isArray(faults) ? faults.slice(0, 8) : faults);

function invalid(where: string, expected: string, found: unknown, cause?: unknown): IndexError {
  const hint = 'tell its publisher, or read another commit with --revision';
  return new IndexError('INDEX_INVALID', 'the index of prebuilt artifacts is not valid', {
    where,
    expected,
    found,
    hint,
    cause,
  });
}

/** Where an artifact's archive is published: `<model>/<rev12>/<profile slug>/<model>-L<bucket>.tar.gz`. */
export function archivePath({ model, bucket }: ArtifactKey, { platform }: Manifest): string {
  return `${model.name}/${model.revision.slice(0, 12)}/${profileSlug(platform)}/${model.name}-L${bucket}.tar.gz`;
}

/** The entry of an archive that was just written. */
export function entryOf(
  path: string,
  { source, artifact, platform, integrity }: Manifest,
  archive: { readonly sha256: string; readonly bytes: number },
): IndexEntry {
  const { soc, macos, macos_build, coremltools } = platform;
  return {
    path,
    model: source.model,
    revision: source.revision,
    weights_sha256: source.weights_sha256,
    graph: artifact.graph,
    length: artifact.length,
    platform: { soc, macos, macos_build: macos_build ?? null, coremltools },
    archive_sha256: archive.sha256,
    bytes: archive.bytes,
    artifact_sha256: integrity.artifact_sha256,
  };
}

/** True when an entry says all that `entry` says; it may say more. */
export function says(found: IndexEntry | undefined, entry: IndexEntry): boolean {
  return found !== undefined && JSON.stringify(pick(found, entry)) === JSON.stringify(pick(entry, entry));
}

const pick = (from: IndexEntry, like: IndexEntry): unknown =>
  Object.keys(like).map((name) => {
    const value = from[name];
    if (name !== 'platform') return value;
    return Object.keys(like.platform).map((part) => (value as IndexEntry['platform'])[part]);
  });

/**
 * The index with these entries in it, in the places of those with the same paths; all others stay as they are. The
 * generation grows with every change: it is the time in seconds, or one more than before. The same index when nothing
 * changes.
 */
export function mergeIndex(index: PrebuiltIndex | undefined, entries: readonly IndexEntry[], now: Date): PrebuiltIndex {
  const merged = new Map((index?.artifacts ?? []).map((entry) => [entry.path, entry]));
  const changed = entries.filter((entry) => !says(merged.get(entry.path), entry));
  if (index && changed.length === 0) return index;
  for (const entry of changed) merged.set(entry.path, entry);
  const artifacts = [...merged.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  const generation = Math.max((index?.generation ?? 0) + 1, Math.floor(now.getTime() / 1000));
  return { ...index, format: FORMAT, format_version: VERSION, generation, artifacts };
}

/** The index as it is published. */
export const indexText = (index: PrebuiltIndex): string => recordText(index);
