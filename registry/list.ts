import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isSystemError, LayaError } from '../schemas/errors.js';
import { MODELS } from './models.js';
import { type ArtifactKey, artifactFolder, artifactsFolder } from './paths.js';
import { type OpenedArtifact, readArtifact, verifyTree } from './read.js';
import type { TreeDigest } from './tree.js';

/** One registered path: what stands there, or why it can't be used. */
export interface Listing {
  /** Path below `artifacts/`. */
  readonly path: string;
  readonly key?: ArtifactKey;
  readonly artifact?: OpenedArtifact;
  readonly problem?: LayaError;
}

const ARTIFACT_NAME = /^bc1s-masked(?:-([a-z0-9-]+))?-L(\d+)-B1$/;
const RESERVED = new Set(['quarantine', 'rejected']);

/**
 * Every artifact folder of the store, sorted by path. A folder that can't be used spoils only its own row.
 */
export async function listArtifacts(root: string): Promise<Listing[]> {
  const base = artifactsFolder(root);
  const rows: Listing[] = [];
  for (const model of await folders(base)) {
    if (RESERVED.has(model)) continue;
    for (const revision of await folders(join(base, model)))
      for (const name of await folders(join(base, model, revision)))
        if (ARTIFACT_NAME.test(name)) rows.push(await readRow(root, model, revision, name));
  }
  return rows;
}

/** A listing with its bytes checked; `digest` is there when they are right. */
export interface Verification extends Listing {
  readonly digest?: TreeDigest;
}

/** Reads every byte of an artifact and compares. Changes nothing. */
export async function verifyListing(listing: Listing): Promise<Verification> {
  if (!listing.artifact) return listing;
  try {
    return { ...listing, digest: await verifyTree(listing.artifact) };
  } catch (error) {
    return { ...listing, problem: asProblem(error, listing.path) };
  }
}

async function readRow(root: string, model: string, revision: string, name: string): Promise<Listing> {
  const path = `${model}/${revision}/${name}`;
  const [, quantization, length] = ARTIFACT_NAME.exec(name)!;
  const spec = MODELS.find((one) => one.name === model && one.revision.startsWith(revision));
  if (!spec || quantization !== undefined) return { path, problem: unknownRow(path) };
  const key = { model: spec, bucket: Number(length) };
  try {
    return { path, key, artifact: await readArtifact(key, artifactFolder(root, key)) };
  } catch (error) {
    return { path, key, problem: asProblem(error, path) };
  }
}

function unknownRow(path: string): LayaError {
  return new LayaError('NOT_PINNED', 'no pinned model, revision and variant of this release has this path', {
    where: path,
  });
}

function asProblem(error: unknown, path: string): LayaError {
  if (error instanceof LayaError) return error;
  if (isSystemError(error)) return new LayaError('UNREADABLE', error.message, { where: path, cause: error });
  throw error;
}

async function folders(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch((error: unknown): Dirent[] => {
    if (isSystemError(error)) return [];
    throw error;
  });
  return entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map((entry) => entry.name)
    .sort();
}
