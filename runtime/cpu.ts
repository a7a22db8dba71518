import type { OpenedDense } from '../registry/dense.js';
import type { ModelSpec } from '../registry/models.js';
import type { OpenedArtifact } from '../registry/read.js';
import { type ArtifactSet, artifactsOf, requireEvidence } from './artifacts.js';
import { checkProvenWith } from './checkpoint-pins.js';
import { type LoadedDense, loadDense } from './dense/load.js';
import { type LoadedArtifact, LoadedByKey, loadArtifact } from './load.js';

/** What device `cpu` answers with; graphs are loaded, and their bytes verified, on first use. */
export interface CpuGraphs {
  /** Buckets with portable evidence, as they were read last. */
  readonly artifacts: ArtifactSet;
  /** The any-length graph as it was read last; undefined when none is registered or it may not be used. */
  readonly dense: OpenedDense | undefined;
  load(bucket: number): Promise<LoadedArtifact>;
  loadDense(): Promise<LoadedDense>;
  /** Buckets that are loaded, and `any`. */
  loaded(): (number | 'any')[];
  release(): Promise<void>;
}

export interface CpuGraphsOptions {
  readonly root: string;
  readonly spec: ModelSpec;
  readonly registered: ArtifactSet;
  readonly dense: OpenedDense | undefined;
  /** Digests of the checkpoint's files. */
  readonly files: Readonly<Record<string, string>>;
  readonly threads: number | undefined;
  readonly now: () => number;
}

/** Throws Artifact*Error for what was proven with another checkpoint. */
export function openCpuGraphs({ root, spec, registered, dense, files, ...options }: CpuGraphsOptions): CpuGraphs {
  const artifacts = artifactsOf('portable', registered);
  const accept = (artifact: OpenedArtifact): void => {
    requireEvidence('portable', artifact);
    checkProvenWith(artifact, files);
  };
  const acceptDense = (one: OpenedDense): void => checkProvenWith(one, files);
  for (const artifact of artifacts.values()) accept(artifact);
  if (dense) acceptDense(dense);
  const buckets = new LoadedByKey(
    async (bucket: number) => {
      const one = await loadArtifact(root, { model: spec, bucket }, { ...options, accept });
      artifacts.set(bucket, one.artifact);
      return one;
    },
    ({ executable }) => executable.release(),
  );
  const any = new LoadedByKey(
    (_: 'any') => loadDense(root, spec, { ...options, accept: acceptDense }),
    ({ session }) => session.release(),
  );
  return {
    artifacts,
    dense,
    load: (bucket) => buckets.load(bucket),
    loadDense: () => any.load('any'),
    loaded: () => [...buckets.keys(), ...any.keys()],
    release: async () => {
      await Promise.all([buckets.close(), any.close()]);
    },
  };
}
