import { type Dirent, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readTextSync } from '../schemas/door.js';
import { isSystemError, LayaError } from '../schemas/errors.js';
import type { Manifest } from '../schemas/generated/types.js';
import { ArtifactIntegrityError, ArtifactMissingError } from './errors.js';
import { checkManifest, type OpenedArtifact, parseManifest } from './manifest.js';
import { MODELS } from './models.js';
import { ARTIFACT_NAME, parseName } from './names.js';
import { type ArtifactKey, artifactPath, artifactsFolder, COMPILED, MANIFEST } from './paths.js';
import { pendingInstall } from './pending.js';
import { asProblem, incomplete } from './problems.js';

/** One registered path: what stands there, or why it can't be used. */
export interface Listing {
  /** Path below `artifacts/`. */
  readonly path: string;
  /** There when this release has the path's model, revision and bucket. */
  readonly key?: ArtifactKey;
  readonly artifact?: OpenedArtifact;
  /** There whenever it was read. */
  readonly manifest?: Manifest;
  readonly problem?: LayaError;
}

const RESERVED = new Set(['quarantine', 'rejected']);

export interface ListOptions {
  /** Read the manifests of artifacts that no release of ours has a key for, too; default: their rows have none. */
  readonly unpinned?: boolean;
}

/**
 * Every artifact folder of the store, sorted by path. A folder that can't be used spoils only its own row. Folders and
 * manifests are read without giving way: a thousand take tenths of a second less so.
 */
export async function listArtifacts(root: string, { unpinned = false }: ListOptions = {}): Promise<Listing[]> {
  const rows: Listing[] = [];
  for (const place of findPlaces(artifactsFolder(root))) {
    const key = PINNED.get(place.path);
    const row = key || place.unreadable ? await readRow(root, place, key) : unpinnedRow(root, place, unpinned);
    if (row) rows.push(row);
  }
  return rows;
}

/** A path where an artifact is, or was before a replacement; or a folder that can't be read. */
interface Place {
  readonly path: string;
  /** False where only copies stand beside it. */
  readonly isTaken: boolean;
  readonly unreadable?: LayaError;
}

function findPlaces(base: string): Place[] {
  const places: Place[] = [];
  const visit = (path: string, depth: number): void => {
    const names = subfolders(path === '' ? base : `${base}/${path}`);
    if (names instanceof LayaError) {
      places.push({ path: path || '.', isTaken: true, unreadable: names });
      return;
    }
    if (depth === 2) {
      const kept = names.map(parseName).filter(({ kind }) => kind === 'plain' || kind === 'old');
      const artifacts = new Set(kept.map((name) => name.base).filter((name) => ARTIFACT_NAME.test(name)));
      for (const name of [...artifacts].sort(byNumbers))
        places.push({ path: `${path}/${name}`, isTaken: names.includes(name) });
      return;
    }
    for (const name of names)
      if (depth > 0 || !RESERVED.has(name)) visit(path === '' ? name : `${path}/${name}`, depth + 1);
  };
  visit('', 0);
  return places;
}

async function readRow(root: string, { path, isTaken, unreadable }: Place, key: ArtifactKey | undefined) {
  if (unreadable || !key) return { path, problem: unreadable ?? NOT_PINNED };
  const folder = `${artifactsFolder(root)}/${path}`;
  try {
    const manifest = readManifestSync(folder);
    checkManifest(key, manifest, folder);
    return { path, key, manifest, artifact: { key, folder, model: join(folder, COMPILED), manifest } };
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return readReplaced(root, key, path, isTaken);
    return { path, key, problem: asProblem(error, path) };
  }
}

function unpinnedRow(root: string, { path }: Place, isRead: boolean): Listing {
  const row = { path, problem: NOT_PINNED };
  try {
    return isRead ? { ...row, manifest: readManifestSync(`${artifactsFolder(root)}/${path}`) } : row;
  } catch (error) {
    if (error instanceof LayaError || isSystemError(error)) return row;
    throw error;
  }
}

/** The path is between the two renames of a replacement, or was so when it was read; or what stands there is no artifact. */
async function readReplaced(root: string, key: ArtifactKey, path: string, isTaken: boolean) {
  try {
    const { readWhole } = await import('./generation.js');
    const { artifact } = await readWhole(root, key, async () => undefined);
    return { path, key, manifest: artifact.manifest, artifact };
  } catch (error) {
    if (!(error instanceof ArtifactMissingError)) return { path, key, problem: asProblem(error, path) };
    return isTaken ? { path, key, problem: problemOf(join(artifactsFolder(root), path)) } : undefined;
  }
}

/** What a folder without manifest or model is: an install that has not been published, or a part of an artifact. */
function problemOf(folder: string): LayaError {
  const pending = pendingInstall(folder);
  if (!pending) return incomplete(folder);
  const { pid, since, state } = pending;
  const facts = { where: folder, found: { pid, since } };
  if (state !== 'dead') return new LayaError('INSTALLING', `process ${pid} is installing it since ${since}`, facts);
  const hint = 'laya-artifacts prune';
  return new LayaError('UNPUBLISHED', `process ${pid} ended while it installed it`, { ...facts, hint });
}

/** Throws ENOENT, as it comes from the system, for a folder without manifest or model. */
function readManifestSync(folder: string): Manifest {
  const path = `${folder}/${MANIFEST}`;
  try {
    const text = readTextSync(path);
    // A plain look is enough where there is a model, and three times as quick as one that throws.
    if (!existsSync(`${folder}/${COMPILED}`)) statSync(`${folder}/${COMPILED}`);
    return parseManifest(text, path);
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || !isSystemError(error)) throw error;
    throw new ArtifactIntegrityError('MANIFEST_UNREADABLE', error.message, { where: path, cause: error });
  }
}

/** Every path that this release has an artifact for. */
const PINNED: ReadonlyMap<string, ArtifactKey> = new Map(
  MODELS.flatMap((model) =>
    model.buckets.map((bucket) => [artifactPath({ model, bucket }), { model, bucket }] as const),
  ),
);

/** Of every such row: making an error for each of a thousand rows takes longer than reading them. */
const NOT_PINNED = new LayaError(
  'NOT_PINNED',
  'no pinned model, revision, variant and bucket of this release has this path',
);

/** L64 before L128. */
const byNumbers = new Intl.Collator('en', { numeric: true }).compare;

/** Names of the folders in a folder, sorted; none where there is no such folder. */
function subfolders(path: string): string[] | LayaError {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry: Dirent) => entry.isDirectory() && !entry.name.startsWith('.'))
      .map((entry) => entry.name)
      .sort();
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return [];
    return asProblem(error, path);
  }
}
