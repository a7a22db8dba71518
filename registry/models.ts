import { UnsupportedModelError } from './errors.js';

/** A checkpoint this project knows: what it is made of and which buckets are offered for it. */
export interface ModelSpec {
  readonly name: string;
  readonly repo: string;
  /** Commit of the repository, 40 hex digits; for a checkpoint that ships here, a digest of its files. */
  readonly revision: string;
  readonly weightsSha256: string;
  readonly encoder: string;
  readonly maxLen: number;
  /** Fixed sequence lengths that artifacts are built for. */
  readonly buckets: readonly number[];
  /** Buckets that device `auto` may choose. */
  readonly autoBuckets: readonly number[];
  /** True when the checkpoint ships with the project under `models/`. */
  readonly bundled: boolean;
}

/** The one graph variant that is validated, and its fixed properties. */
export const GRAPH = {
  name: 'bc1s-masked',
  batch: 1,
  precision: 'float16',
  maxOptions: 32,
  inputs: ['embeddings', 'full_mask', 'local_mask', 'type_vectors', 'marker_map'],
  outputs: ['logits', 'cls'],
} as const;

/** The pinned checkpoints. Revisions and weight digests are those the goldens were recorded with. */
export const MODELS: readonly ModelSpec[] = [
  {
    name: 'laya',
    repo: 'convaiinnovations/laya',
    revision: 'c5d78730f3493e4fe16d61507ef4b78eef7318cf',
    weightsSha256: '891102d372688fc2a094dac56a384bc537b87c63f21f9f3dac0be2b7cbc8d86c',
    encoder: 'ModernBERT-large',
    maxLen: 512,
    buckets: [64, 96, 128],
    autoBuckets: [64, 96, 128],
    bundled: false,
  },
  {
    name: 'laya-multilingual',
    repo: 'convaiinnovations/laya-multilingual',
    revision: '052592a15d198d9ad47da779604259b10b47b7aa',
    weightsSha256: '9d628fd971b700382ac6f65920a86f149777b2e748e0c955fb3b19695aa8f204',
    encoder: 'mmBERT-base',
    maxLen: 1024,
    buckets: [64, 96, 128, 256],
    autoBuckets: [64, 96, 128],
    bundled: false,
  },
  {
    name: 'laya-typed-decisions',
    repo: 'convaiinnovations/laya-typed-decisions',
    revision: 'f9ab0b228f0fc0f14d873dbc99038f135c2da1b2',
    weightsSha256: '4fa56de72383a9d3efa9cfa78955733c81b9fc8067a587ca4beb82c78107a24e',
    encoder: 'ModernBERT-large',
    maxLen: 1024,
    buckets: [64, 96, 128],
    autoBuckets: [64, 96, 128],
    bundled: false,
  },
  {
    name: 'laya-tiny',
    repo: 'laya-artifacts/laya-tiny',
    revision: '4defbfb4419a07a6eb8923598eb5b1063ee66d71',
    weightsSha256: 'bbc18de4aa541093c7f69a8514cf5e968d73bf91ae2a8374d6dfb6f0f934b779',
    encoder: 'ModernBERT, 4 layers, d 128',
    maxLen: 256,
    buckets: [64, 96, 128, 256],
    autoBuckets: [64, 96, 128, 256],
    bundled: true,
  },
];

/**
 * The pinned checkpoint behind a short name or a repository name.
 * Throws UnsupportedModelError (MODEL_UNKNOWN) for anything else.
 */
export function findModel(name: string): ModelSpec {
  const spec = MODELS.find((one) => one.name === name || one.repo === name);
  if (spec) return spec;
  throw new UnsupportedModelError('MODEL_UNKNOWN', `no checkpoint is known as ${JSON.stringify(name.slice(0, 80))}`, {
    expected: MODELS.map((one) => one.name),
    found: name.slice(0, 80),
    hint: `use one of: ${MODELS.map((one) => one.name).join(', ')}`,
  });
}
