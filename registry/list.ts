import { type Dirent, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readTextSync } from '../schemas/door.js';
import { isSystemError, LayaError } from '../schemas/errors.js';
import type { Manifest } from '../schemas/generated/types.js';
import { ArtifactIntegrityError, ArtifactMissingError } from './errors.js';
import { readWhole } from './generation.js';
import { MODELS } from './models.js';
import { ARTIFACT_NAME, parseName } from './names.js';
import { type ArtifactKey, artifactPath, artifactsFolder, COMPILED, MANIFEST } from './paths.js';
import { pendingInstall } from './pending.js';
import { asProblem } from './problems.js';
import { incomplete } from './quarantine.js';
import { checkManifest, type OpenedArtifact, parseManifest, verifyTree } from './read.js';
import type { HashMemo, TreeDigest } from './tree.js';

/** One registered path: what stands there, or why it can't be used. */
export interface Listing {
  /** Path below `artifacts/`. */
  readonly path: string;
  /** There when this release has the path's model, revision and bucket. */
  readonly key?: ArtifactKey;
  readonly artifact?: OpenedArtifact;
  /** There whenever it could be read, also of artifacts that this release has no key for. */
  readonly manifest?: Manifest;
  readonly problem?: LayaError;
}

const RESERVED = new Set(['quarantine', 'rejected']);

/**
 * Every artifact folder of the store, sorted by path. A folder that can't be used spoils only its own row. Folders and
 * manifests are read without giving way: a thousand take tenths of a second less so.
 */
export async function listArtifacts(root: string): Promise<Listing[]> {
  const rows: Listing[] = [];
  for (const place of findPlaces(artifactsFolder(root))) {
    const row = await readRow(root, place);
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
    const names = subfolders(join(base, path));
    if (names instanceof LayaError) {
      places.push({ path: path || '.', isTaken: true, unreadable: names });
      return;
    }
    if (depth === 2) {
      const kept = names.map(parseName).filter(({ kind }) => kind === 'plain' || kind === 'old');
      const artifacts = new Set(kept.map((name) => name.base).filter((name) => ARTIFACT_NAME.test(name)));
      for (const name of [...artifacts].sort()) places.push({ path: `${path}/${name}`, isTaken: names.includes(name) });
      return;
    }
    for (const name of names)
      if (depth > 0 || !RESERVED.has(name)) visit(path === '' ? name : `${path}/${name}`, depth + 1);
  };
  visit('', 0);
  return places;
}

async function readRow(root: string, { path, isTaken, unreadable }: Place): Promise<Listing | undefined> {
  if (unreadable) return { path, problem: unreadable };
  const folder = join(artifactsFolder(root), path);
  const key = keyOf(path);
  try {
    const manifest = readManifestSync(folder);
    if (!key) return { path, manifest, problem: NOT_PINNED };
    checkManifest(key, manifest, folder);
    return { path, key, manifest, artifact: { key, folder, model: join(folder, COMPILED), manifest } };
  } catch (error) {
    if (!key) return { path, problem: NOT_PINNED };
    if (isSystemError(error, 'ENOENT')) return readReplaced(root, key, path, isTaken);
    return { path, key, problem: asProblem(error, path) };
  }
}

/** The path is between the two renames of a replacement, or was so when it was read; or what stands there is no artifact. */
async function readReplaced(root: string, key: ArtifactKey, path: string, isTaken: boolean) {
  try {
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
  const path = join(folder, MANIFEST);
  statSync(join(folder, COMPILED));
  try {
    return parseManifest(readTextSync(path), path);
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || !isSystemError(error)) throw error;
    throw new ArtifactIntegrityError('MANIFEST_UNREADABLE', error.message, { where: path, cause: error });
  }
}

/** The key whose artifact has this very path; undefined for other models, revisions, variants and buckets. */
function keyOf(path: string): ArtifactKey | undefined {
  const [name, revision = ''] = path.split('/');
  const model = MODELS.find((one) => one.name === name && one.revision.startsWith(revision));
  const bucket = model?.buckets.find((one) => artifactPath({ model, bucket: one }) === path);
  return model && bucket !== undefined ? { model, bucket } : undefined;
}

/** Of every such row: making an error for each of a thousand rows takes longer than reading them. */
const NOT_PINNED = new LayaError(
  'NOT_PINNED',
  'no pinned model, revision, variant and bucket of this release has this path',
);

/** A listing with its bytes checked; `digest` is there when they are right. */
export interface Verification extends Listing {
  readonly digest?: TreeDigest;
}

/**
 * Reads every byte of the artifact that stands at a listed path now, and compares. Changes nothing.
 *
 * @param memo Shared by the artifacts of one command, so that shared files are read once.
 */
export async function verifyListing(root: string, listing: Listing, memo: HashMemo = new Map()): Promise<Verification> {
  const { path, key } = listing;
  if (!key) return listing;
  try {
    const { artifact, value } = await readWhole(root, key, (opened) => verifyTree(opened, memo));
    return { path, key, artifact, manifest: artifact.manifest, digest: value };
  } catch (error) {
    const isGone = error instanceof ArtifactMissingError && listing.problem;
    return { path, key, problem: isGone ? isGone : asProblem(error, path) };
  }
}

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
