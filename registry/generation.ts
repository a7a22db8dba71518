import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isSystemError, LayaError } from '../schemas/errors.js';
import { locateArtifact, requireArtifact } from './locate.js';
import { type ArtifactKey, MANIFEST } from './paths.js';
import { type OpenedArtifact, readArtifact, verifyTree } from './read.js';

/** An artifact whose manifest and bytes were read from one and the same generation. */
export interface Whole<T> {
  readonly artifact: OpenedArtifact;
  /** What the check gave. */
  readonly value: T;
}

/** Swaps that may happen, one after the other, while one reader reads. */
const ATTEMPTS = 100;

/**
 * Reads the registered artifact and checks its bytes with `check`. A failure counts only when the folder and manifest
 * are still the ones that were opened; otherwise the artifact was replaced meanwhile, and the reader starts over
 * (protocol §3.4, fault R20). Throws Artifact*Error, or whatever `check` throws.
 */
export async function readWhole<T>(
  root: string,
  key: ArtifactKey,
  check: (artifact: OpenedArtifact, generation: string) => Promise<T>,
): Promise<Whole<T>> {
  for (let attempt = 1; ; attempt++) {
    const folder = await requireArtifact(root, key);
    const generation = (await generationOf(folder)) ?? '';
    try {
      const artifact = await readArtifact(key, folder);
      return { artifact, value: await check(artifact, generation) };
    } catch (error) {
      if (!(error instanceof LayaError) && !isSystemError(error)) throw error;
      if (attempt === ATTEMPTS || (await isCurrent(root, key, folder, generation))) throw error;
    }
  }
}

/** True when an artifact stands in this very folder, manifest and bytes right for the key. */
export async function isWhole(key: ArtifactKey, folder: string): Promise<boolean> {
  try {
    await verifyTree(await readArtifact(key, folder));
    return true;
  } catch (error) {
    if (error instanceof LayaError || isSystemError(error)) return false;
    throw error;
  }
}

/** Identity of an artifact folder and its manifest; undefined when one of them is not there. */
export async function generationOf(folder: string): Promise<string | undefined> {
  try {
    const [outer, inner] = await Promise.all(
      [folder, join(folder, MANIFEST)].map((path) => stat(path, { bigint: true })),
    );
    return [outer!, inner!].map(({ dev, ino, ctimeNs }) => `${dev}:${ino}:${ctimeNs}`).join(' ');
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

async function isCurrent(root: string, key: ArtifactKey, folder: string, generation: string): Promise<boolean> {
  return (await locateArtifact(root, key)) === folder && ((await generationOf(folder)) ?? '') === generation;
}
