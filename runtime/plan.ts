import type { ModelSpec } from '../registry/models.js';
import { GRAPH } from '../registry/models.js';
import { type ArtifactSet, bucketFor } from './artifacts.js';
import type { PreparedRow } from './prompt.js';

/** Which graphs may answer. `auto` takes a bucket artifact for a single row that fits one, the any-length graph otherwise. */
export type GraphChoice = 'auto' | 'buckets' | 'any-length';

/** Why a request ran where it did: the device's reason, or the first that made it run on the any-length graph. */
export type RoutingReason =
  | 'cpu_requested'
  | 'ane_runtime_unavailable'
  | 'no_questions'
  | 'any_length_requested'
  | 'multiple_questions'
  | 'sequence_exceeds_buckets'
  | 'options_exceed_graph'
  | 'bucket_artifact_unavailable';

/** What a request will run on; `buckets` has one for each row, and is empty for the other graphs. */
export interface Plan {
  readonly graph: 'bc1s-masked' | 'dense-any' | 'none';
  readonly buckets: readonly number[];
  readonly reason: RoutingReason;
}

/** What a model has to run requests on. */
export interface Runnable {
  readonly spec: ModelSpec;
  readonly artifacts: ArtifactSet;
  readonly graph: GraphChoice;
  /** Whether the any-length graph is registered and may answer. */
  readonly hasDense: boolean;
  readonly deviceReason: 'cpu_requested' | 'ane_runtime_unavailable';
}

/**
 * Decides before anything runs. Throws UnsupportedShapeError or ArtifactMissingError for a row that a bucket has to
 * answer and none can (fault S19): where bucket artifacts were asked for, nothing else takes their place.
 */
export function planRequest(rows: readonly PreparedRow[], model: Runnable): Plan {
  if (rows.length === 0) return { graph: 'none', buckets: [], reason: 'no_questions' };
  const reason = model.hasDense ? denseReason(rows, model) : undefined;
  if (reason !== undefined) return { graph: 'dense-any', buckets: [], reason };
  const buckets = rows.map(({ ids }) => bucketFor(ids.length, model.spec, model.artifacts));
  return { graph: 'bc1s-masked', buckets, reason: model.deviceReason };
}

function denseReason(rows: readonly PreparedRow[], { graph, artifacts, spec }: Runnable): RoutingReason | undefined {
  if (graph !== 'auto') return graph === 'any-length' ? 'any_length_requested' : undefined;
  if (rows.length > 1) return 'multiple_questions';
  const [{ ids, markers }] = rows as readonly [PreparedRow];
  if (ids.length > spec.buckets.at(-1)!) return 'sequence_exceeds_buckets';
  if (markers.length > GRAPH.maxOptions) return 'options_exceed_graph';
  return [...artifacts.keys()].some((bucket) => bucket >= ids.length) ? undefined : 'bucket_artifact_unavailable';
}
