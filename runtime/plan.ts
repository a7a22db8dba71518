import type { ModelSpec } from '../registry/models.js';
import { GRAPH } from '../registry/models.js';
import type { AneAbsence } from './ane/device.js';
import { type ArtifactSet, bucketFor } from './artifacts.js';
import type { PreparedRow } from './prompt.js';

/** Where rows run. `auto` takes the best device that serves here and records which one and why. */
export type Device = 'auto' | 'cpu' | 'ane' | 'gpu';

/** Which graphs may answer on the cpu. `auto` takes the any-length graph where it is registered, the buckets otherwise. */
export type GraphChoice = 'auto' | 'buckets' | 'any-length';

/** Why a request ran on its device (docs/devices.md §2); exactly one for each answer. */
export type DeviceReason =
  | 'cpu_requested'
  | 'ane_requested'
  | 'no_questions'
  | AneAbsence
  | 'any_length_requested'
  | 'validated_short_single_question_path'
  | 'multiple_questions'
  | 'options_exceed_graph'
  | 'sequence_exceeds_ane_auto_range'
  | 'ane_backlog_shorter_on_cpu'
  | 'cpu_backlog_shorter_on_ane'
  | 'cpu_artifact_unavailable';

/** Why a request ran as it did: the device's reason, or the first for which no bucket could have answered it at once. */
export type RoutingReason = DeviceReason | 'sequence_exceeds_buckets' | 'bucket_artifact_unavailable';

/** What a request will run on; `buckets` has one for each row, and is empty for the other graphs. */
export interface Plan {
  readonly device: 'cpu' | 'ane' | 'none';
  readonly deviceReason: DeviceReason;
  readonly graph: 'bc1s-masked' | 'dense-any' | 'none';
  readonly buckets: readonly number[];
  readonly reason: RoutingReason;
}

/** What one device has to do, and how long it would take. */
export interface DeviceLoad {
  /** Pieces of work that wait or run. */
  readonly length: number;
  /** Expected milliseconds until it is idle. */
  readonly backlogMs: number;
  /** Expected milliseconds of work of this size; null before anything was measured. */
  estimate(size: number): number | null;
}

/** The Neural Engine as a plan sees it. */
export interface AneView {
  /** Null while it serves. */
  readonly absence: AneAbsence | null;
  readonly artifacts: ArtifactSet;
}

/** What a model has to run requests on. */
export interface Runnable {
  readonly spec: ModelSpec;
  readonly device: Device;
  /** Artifacts that device `cpu` may use. */
  readonly artifacts: ArtifactSet;
  readonly graph: GraphChoice;
  /** Whether the any-length graph is registered and may answer. */
  readonly hasDense: boolean;
  readonly ane: AneView;
  readonly loads: { readonly cpu: DeviceLoad; readonly ane: DeviceLoad };
}

/** True when device `cpu` has something to answer with. */
export const servesCpu = ({ hasDense, artifacts }: Pick<Runnable, 'hasDense' | 'artifacts'>): boolean =>
  hasDense || artifacts.size > 0;

/** True when the any-length graph answers what the cpu does: it pads nothing, and several rows run together. */
export const usesDense = ({ hasDense, graph }: Pick<Runnable, 'hasDense' | 'graph'>): boolean =>
  hasDense && graph !== 'buckets';

/** The size of a request for a device's load: tokens that are computed, padding apart. */
export const sizeOf = (rows: readonly Pick<PreparedRow, 'ids'>[]): number =>
  rows.reduce((sum, { ids }) => sum + ids.length, 0);

/**
 * Decides before anything runs. Throws UnsupportedShapeError or ArtifactMissingError for a row that a bucket has to
 * answer and none can (fault S19): what was asked for is not replaced by something else.
 */
export function planRequest(rows: readonly PreparedRow[], model: Runnable): Plan {
  if (rows.length === 0) return NOTHING;
  const [device, deviceReason] = chooseDevice(rows, model);
  if (device === 'ane') {
    const buckets = bucketsFor(rows, model, model.ane.artifacts);
    return { device, deviceReason, graph: 'bc1s-masked', buckets, reason: deviceReason };
  }
  if (!usesDense(model)) {
    const buckets = bucketsFor(rows, model, model.artifacts);
    return { device, deviceReason, graph: 'bc1s-masked', buckets, reason: deviceReason };
  }
  // With the Neural Engine at hand it was the request that decided, and first.
  const decided = model.device === 'auto' && model.ane.absence === null;
  const reason = decided ? deviceReason : (denseReason(rows, model) ?? deviceReason);
  return { device, deviceReason, graph: 'dense-any', buckets: [], reason };
}

const NOTHING: Plan = {
  device: 'none',
  deviceReason: 'no_questions',
  graph: 'none',
  buckets: [],
  reason: 'no_questions',
};

const bucketsFor = (rows: readonly PreparedRow[], { spec }: Runnable, artifacts: ArtifactSet): number[] =>
  rows.map(({ ids }) => bucketFor(ids.length, spec, artifacts));

function chooseDevice(rows: readonly PreparedRow[], model: Runnable): readonly ['cpu' | 'ane', DeviceReason] {
  if (model.device === 'ane') return ['ane', 'ane_requested'];
  if (model.device === 'cpu') return ['cpu', 'cpu_requested'];
  if (model.graph === 'any-length') return ['cpu', 'any_length_requested'];
  if (!servesCpu(model)) return ['ane', 'cpu_artifact_unavailable'];
  if (model.ane.absence !== null) return ['cpu', model.ane.absence];
  const reason = unfit(rows, model);
  if (reason === undefined) return isSooner('cpu', rows, model) ? ['cpu', 'ane_backlog_shorter_on_cpu'] : SHORT;
  const isExplicitOnly = reason === 'sequence_exceeds_ane_auto_range' && holds(rows, model.ane.artifacts);
  return isExplicitOnly && isSooner('ane', rows, model) ? ['ane', 'cpu_backlog_shorter_on_ane'] : ['cpu', reason];
}

const SHORT = ['ane', 'validated_short_single_question_path'] as const;

/** Why `auto` does not send a request to the Neural Engine; undefined where it does. */
function unfit(rows: readonly PreparedRow[], { spec, ane }: Runnable): DeviceReason | undefined {
  const [row] = rows as readonly [PreparedRow];
  if (rows.length > 1) return 'multiple_questions';
  if (row.markers.length > GRAPH.maxOptions) return 'options_exceed_graph';
  if (row.ids.length > spec.autoBuckets.at(-1)!) return 'sequence_exceeds_ane_auto_range';
  const offered = new Map([...ane.artifacts].filter(([bucket]) => spec.autoBuckets.includes(bucket)));
  return holds(rows, offered) ? undefined : 'ane_artifact_unavailable';
}

const holds = ([row]: readonly PreparedRow[], artifacts: ArtifactSet): boolean =>
  [...artifacts.keys()].some((bucket) => bucket >= row!.ids.length);

/** True when the other device is busy and this one is expected to be done earlier; both must have been measured. */
function isSooner(device: 'cpu' | 'ane', rows: readonly PreparedRow[], { loads }: Runnable): boolean {
  const [here, there] = device === 'cpu' ? [loads.cpu, loads.ane] : [loads.ane, loads.cpu];
  const [own, other] = [here.estimate(sizeOf(rows)), there.estimate(sizeOf(rows))];
  if (there.length === 0 || own === null || other === null) return false;
  return here.backlogMs + own < there.backlogMs + other;
}

/** Why no bucket could have answered at once; undefined where one could. */
function denseReason(rows: readonly PreparedRow[], { graph, artifacts, spec }: Runnable): RoutingReason | undefined {
  if (graph === 'any-length') return 'any_length_requested';
  if (rows.length > 1) return 'multiple_questions';
  const [{ ids, markers }] = rows as readonly [PreparedRow];
  if (ids.length > spec.buckets.at(-1)!) return 'sequence_exceeds_buckets';
  if (markers.length > GRAPH.maxOptions) return 'options_exceed_graph';
  return holds(rows, artifacts) ? undefined : 'bucket_artifact_unavailable';
}
