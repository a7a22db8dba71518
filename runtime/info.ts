import { DENSE } from '../registry/dense.js';
import { GRAPH } from '../registry/models.js';
import type { OpenModel } from './open.js';
import type { Plan, RoutingReason } from './plan.js';
import type { Prepared } from './prompt.js';

/** Which graph answered, where and why. */
export interface RuntimeInfo {
  readonly backend: 'portable' | 'none';
  readonly device: 'cpu' | 'none';
  readonly model: string;
  readonly model_revision: string;
  /** Tokens of the longest row. */
  readonly sequence_length: number;
  readonly question_count: number;
  readonly routing_reason: RoutingReason;
  /** Why a router chose this model; null where none did. */
  readonly model_routing: string | null;
  readonly graph: Plan['graph'];
  /** `L<bucket>:<hash[:12]>` of every artifact used, or `any:<hash[:12]>`. */
  readonly artifact_revision: string;
  readonly compute_units: 'PORTABLE_CPU' | null;
  readonly buckets: readonly number[];
  readonly dtype: string;
  readonly execution: 'inline';
  readonly truncated: boolean;
  /** From the call to the result, waiting included. */
  readonly latency_ms: number;
  readonly queue_wait_ms: number;
}

/** Milliseconds with three decimals. */
export const milliseconds = (value: number): number => Math.round(value * 1000) / 1000;

export function describe(
  model: OpenModel,
  { rows }: Prepared,
  { graph, buckets, reason }: Plan,
  times: { readonly latency: number; readonly wait: number },
): RuntimeInfo {
  const used = [...new Set(buckets)].sort((a, b) => a - b);
  const idle = graph === 'none';
  return {
    backend: idle ? 'none' : 'portable',
    device: idle ? 'none' : model.device,
    model: model.spec.name,
    model_revision: model.spec.revision,
    sequence_length: Math.max(0, ...rows.map((row) => row.ids.length)),
    question_count: rows.length,
    routing_reason: reason,
    model_routing: null,
    graph,
    artifact_revision: revisionOf(model, graph, used),
    compute_units: idle ? null : 'PORTABLE_CPU',
    buckets: used,
    dtype: graph === 'dense-any' ? DENSE.precision : GRAPH.precision,
    execution: 'inline',
    truncated: rows.some((row) => row.truncated),
    latency_ms: milliseconds(times.latency),
    queue_wait_ms: milliseconds(times.wait),
  };
}

function revisionOf(model: OpenModel, graph: Plan['graph'], used: readonly number[]): string {
  const short = (hash: string): string => hash.slice(0, 12);
  if (graph === 'dense-any') return `any:${short(model.dense!.manifest.integrity.artifact_sha256)}`;
  const hash = (bucket: number): string => model.artifacts.get(bucket)!.manifest.integrity.artifact_sha256;
  return used.map((bucket) => `L${bucket}:${short(hash(bucket))}`).join(',');
}
