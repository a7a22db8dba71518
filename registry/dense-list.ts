import type { LayaError } from '../schemas/errors.js';
import { denseFolder, locateDense, type OpenedDense, readDense, verifyDense } from './dense.js';
import { MODELS } from './models.js';
import { asProblem } from './problems.js';
import { sha256File } from './sha256.js';
import type { TreeDigest } from './tree.js';

/** An any-length graph that stands in the store, or why it can't be used. */
export interface DenseListing {
  readonly model: string;
  /** Path below the root. */
  readonly path: string;
  readonly dense?: OpenedDense;
  readonly problem?: LayaError;
}

/** A listing with its bytes checked; `digest` is there when they are right. */
export interface DenseVerification extends DenseListing {
  readonly digest?: TreeDigest;
}

/** The any-length graph of each model that has one. One that can't be used spoils only its own row. */
export async function listDense(root: string): Promise<DenseListing[]> {
  const rows: DenseListing[] = [];
  for (const model of MODELS) {
    const folder = await locateDense(root, model);
    if (folder === undefined) continue;
    const row = { model: model.name, path: denseFolder('', model) };
    try {
      rows.push({ ...row, dense: await readDense(model, folder) });
    } catch (error) {
      rows.push({ ...row, problem: asProblem(error, folder) });
    }
  }
  return rows;
}

/** Reads every byte of a listed graph. Changes nothing. */
export async function verifyDenseListing(listing: DenseListing): Promise<DenseVerification> {
  if (!listing.dense) return listing;
  try {
    return { ...listing, digest: await verifyDense(listing.dense, sha256File) };
  } catch (error) {
    return { ...listing, problem: asProblem(error, listing.dense.folder) };
  }
}
