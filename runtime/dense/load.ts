import { join } from 'node:path';
import { DENSE_FOLDER, DENSE_MODEL, type OpenedDense, requireDense, verifyDense } from '../../registry/dense.js';
import { ArtifactIntegrityError } from '../../registry/errors.js';
import { openStampedFolder } from '../../registry/file-stamps.js';
import { generationOf } from '../../registry/generation.js';
import type { ModelSpec } from '../../registry/models.js';
import { DenseSession } from './session.js';

export interface LoadDenseOptions {
  readonly threads?: number | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Throws for a graph that may not be used. */
  readonly accept: (dense: OpenedDense) => void;
}

/** An any-length graph that was checked and then opened, and nothing took its place in between. */
export interface LoadedDense {
  readonly dense: OpenedDense;
  readonly session: DenseSession;
}

/** Replacements that may come, one after the other, while the graph is opened. */
const ATTEMPTS = 20;

/**
 * Loads the any-length graph that is registered now: its manifest, its bytes (large files are hashed unless a stamp
 * vouches for them, protocol §7.2), the session. Throws Artifact*Error, MilError, and what `accept` throws.
 */
export async function loadDense(root: string, model: ModelSpec, options: LoadDenseOptions): Promise<LoadedDense> {
  for (let attempt = 1; ; attempt++) {
    const dense = await requireDense(root, model);
    const generation = await generationOf(dense.folder);
    options.accept(dense);
    const folder = join(dense.folder, DENSE_FOLDER);
    const isCurrent = async () => generation !== undefined && (await generationOf(dense.folder)) === generation;
    let session: DenseSession | undefined;
    try {
      const stamped = await openStampedFolder(root, folder, options.now);
      await verifyDense(dense, stamped.digest);
      await stamped.save();
      session = await DenseSession.open(join(folder, DENSE_MODEL), { threads: options.threads });
      if (await isCurrent()) return { dense, session };
    } catch (error) {
      if (attempt === ATTEMPTS || (await isCurrent())) throw error;
    }
    await session?.release();
    if (attempt === ATTEMPTS)
      throw new ArtifactIntegrityError('TREE_MISMATCH', 'the any-length graph was replaced while it was opened', {
        where: dense.folder,
        hint: 'run the command again',
      });
  }
}
