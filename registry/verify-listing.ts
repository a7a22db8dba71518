import { ArtifactMissingError } from './errors.js';
import { readWhole } from './generation.js';
import type { Listing } from './list.js';
import { asProblem } from './problems.js';
import { verifyTree } from './read.js';
import type { HashMemo, TreeDigest } from './tree.js';

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
