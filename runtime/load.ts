import { ArtifactIntegrityError } from '../registry/errors.js';
import { generationOf, readWhole } from '../registry/generation.js';
import { type ArtifactKey, portableModelsFolder } from '../registry/paths.js';
import type { OpenedArtifact } from '../registry/read.js';
import { type CheckedTree, verifyStamped } from '../registry/stamps.js';
import type { Executable } from './executor.js';

export interface LoadOptions {
  readonly threads?: number | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Throws for an artifact that may not be used. */
  readonly accept: (artifact: OpenedArtifact) => void;
}

/** An artifact that was checked and then opened, and nothing took its place in between. */
export interface LoadedArtifact {
  readonly artifact: OpenedArtifact;
  readonly executable: Executable;
  readonly stamp: CheckedTree['stamp'];
}

/**
 * Loads the artifact that is registered now: its manifest, its bytes (hashed unless a stamp vouches for them), the
 * executor. Throws Artifact*Error, MilError, and what `accept` throws.
 */
export async function loadArtifact(root: string, key: ArtifactKey, options: LoadOptions): Promise<LoadedArtifact> {
  const { artifact, value } = await readWhole(root, key, async (opened, generation) => {
    options.accept(opened);
    const [{ openMlmodelc }, { v2, stamp }] = await Promise.all([
      import('./mil/session.js'),
      verifyStamped(root, opened, options.now),
    ]);
    const executable = await openMlmodelc(opened.model, {
      ...(options.threads === undefined ? {} : { threads: options.threads }),
      cache: { dir: portableModelsFolder(root), key: v2 },
    });
    if ((await generationOf(opened.folder)) === generation) return { executable, stamp };
    await executable.release();
    throw new ArtifactIntegrityError('TREE_MISMATCH', 'the artifact was replaced while it was opened', {
      where: opened.folder,
      hint: 'run the command again',
    });
  });
  return { artifact, ...value };
}

/** What was loaded for one model, each by its key on first use; a load that failed is tried again the next time. */
export class LoadedByKey<K, T> {
  readonly #load: (key: K) => Promise<T>;
  readonly #release: (loaded: T) => Promise<void>;
  readonly #loaded = new Map<K, Promise<T>>();

  constructor(load: (key: K) => Promise<T>, release: (loaded: T) => Promise<void>) {
    this.#load = load;
    this.#release = release;
  }

  load(key: K): Promise<T> {
    const known = this.#loaded.get(key);
    if (known) return known;
    const loading = this.#load(key);
    this.#loaded.set(key, loading);
    loading.catch(() => this.#loaded.delete(key));
    return loading;
  }

  /** What is loaded or being loaded. */
  keys(): K[] {
    return [...this.#loaded.keys()];
  }

  /** Releases what was loaded. */
  async close(): Promise<void> {
    for (const loading of this.#loaded.values()) await loading.then(this.#release).catch(() => undefined);
    this.#loaded.clear();
  }
}
