import { DENSE } from '../registry/dense.js';
import { GRAPH } from '../registry/models.js';
import type { OpenedArtifact } from '../registry/read.js';
import type { AneSession } from './ane/session.js';
import type { OpenModel } from './open.js';
import type { DeviceReason, Plan, RoutingReason } from './plan.js';
import type { CoreMlKind } from './probe/records.js';
import type { Prepared } from './prompt.js';

/** Which graph answered, where and why. */
export interface RuntimeInfo {
  /** `coreml` where Apple's framework computed; what a test's stand-in says of itself. */
  readonly backend: 'portable' | 'coreml' | Exclude<CoreMlKind, 'apple'>;
  readonly device: 'cpu' | 'ane' | 'none';
  readonly model: string;
  readonly model_revision: string;
  /** Tokens of the longest row. */
  readonly sequence_length: number;
  readonly question_count: number;
  readonly routing_reason: RoutingReason;
  /** Why this device. */
  readonly device_reason: DeviceReason;
  /** Why a router chose this model; null where none did. */
  readonly model_routing: string | null;
  readonly graph: Plan['graph'];
  /** `L<bucket>:<hash[:12]>` of every artifact used, or `any:<hash[:12]>`. */
  readonly artifact_revision: string;
  readonly compute_units: 'PORTABLE_CPU' | 'CPU_AND_NE' | null;
  readonly buckets: readonly number[];
  readonly dtype: string;
  /** `workers` on the Neural Engine, which runs in a process of its own. */
  readonly execution: 'inline' | 'workers';
  readonly truncated: boolean;
  /** From the call to the result, waiting included. */
  readonly latency_ms: number;
  readonly queue_wait_ms: number;
  /** Work that each device had when this request was planned: requests, and milliseconds that they were to take. */
  readonly cpu_queue_length: number;
  readonly cpu_backlog_ms: number;
  readonly ane_queue_length: number;
  readonly ane_backlog_ms: number;
  /** How often laya-probe was started again since the model was opened. */
  readonly ane_restarts: number;
}

/** What the devices had to do when a request was planned. */
export type Backlog = Pick<
  RuntimeInfo,
  'cpu_queue_length' | 'cpu_backlog_ms' | 'ane_queue_length' | 'ane_backlog_ms' | 'ane_restarts'
>;

/** Milliseconds with three decimals. */
export const milliseconds = (value: number): number => Math.round(value * 1000) / 1000;

export const backlogOf = ({ loads: { cpu, ane }, aneDevice }: OpenModel): Backlog => ({
  cpu_queue_length: cpu.length,
  cpu_backlog_ms: milliseconds(cpu.backlogMs),
  ane_queue_length: ane.length,
  ane_backlog_ms: milliseconds(ane.backlogMs),
  ane_restarts: aneDevice?.status.restarts ?? 0,
});

/** How a request went, as far as its `RuntimeInfo` tells. */
export interface Course {
  readonly plan: Plan;
  /** What answered on the Neural Engine. */
  readonly session: AneSession | undefined;
  readonly backlog: Backlog;
  readonly latency: number;
  readonly wait: number;
}

export function describe(model: OpenModel, { rows }: Prepared, course: Course): RuntimeInfo {
  const { graph, buckets, reason, device, deviceReason } = course.plan;
  const used = [...new Set(buckets)].sort((a, b) => a - b);
  return {
    backend: backendOf(course),
    device,
    model: model.spec.name,
    model_revision: model.spec.revision,
    sequence_length: Math.max(0, ...rows.map((row) => row.ids.length)),
    question_count: rows.length,
    routing_reason: reason,
    device_reason: deviceReason,
    model_routing: null,
    graph,
    artifact_revision: revisionOf(model, course, used),
    compute_units: device === 'none' ? null : device === 'ane' ? 'CPU_AND_NE' : 'PORTABLE_CPU',
    buckets: used,
    dtype: graph === 'dense-any' ? DENSE.precision : GRAPH.precision,
    execution: device === 'ane' ? 'workers' : 'inline',
    truncated: rows.some((row) => row.truncated),
    latency_ms: milliseconds(course.latency),
    queue_wait_ms: milliseconds(course.wait),
    ...course.backlog,
  };
}

function backendOf({ plan, session }: Course): RuntimeInfo['backend'] {
  if (plan.device !== 'ane') return plan.device === 'cpu' ? 'portable' : 'none';
  return session!.coreMl === 'apple' ? 'coreml' : session!.coreMl;
}

function revisionOf(model: OpenModel, { plan, session }: Course, used: readonly number[]): string {
  const short = ({ manifest }: Pick<OpenedArtifact, 'manifest'>): string =>
    manifest.integrity.artifact_sha256.slice(0, 12);
  if (plan.graph === 'dense-any') return `any:${model.cpu.dense!.manifest.integrity.artifact_sha256.slice(0, 12)}`;
  const artifact = (bucket: number): OpenedArtifact =>
    session ? session.models.get(bucket)!.artifact : model.artifacts.get(bucket)!;
  return used.map((bucket) => `L${bucket}:${short(artifact(bucket))}`).join(',');
}
