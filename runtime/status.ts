import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { packageRoot } from '../registry/package-root.js';
import type { AneStatus } from './ane/device.js';
import { milliseconds } from './info.js';
import type { OpenModel } from './open.js';
import type { Device, DeviceLoad, DeviceReason, GraphChoice } from './plan.js';

/** Requests on one device, and the milliseconds they are expected to take. */
interface DeviceWork {
  readonly queue_length: number;
  readonly backlog_ms: number;
  /** Graphs in memory: `L<bucket>`, `any`. */
  readonly loaded: readonly string[];
}

/** What a model is, how its devices do, and what they run on. */
export interface LayaInfo {
  readonly model: string;
  readonly model_revision: string;
  readonly device: Device;
  readonly graph: GraphChoice;
  readonly cpu: DeviceWork & { readonly status: 'ready' | 'unavailable' };
  readonly ane: DeviceWork &
    Omit<AneStatus, 'status' | 'reason'> & {
      readonly status: AneStatus['status'] | 'unavailable';
      /** Why it does not serve; null while it does. */
      readonly reason: DeviceReason | null;
      /** The laya-probe that runs: its version, what computes in it, its process. */
      readonly probe: { readonly version: string; readonly core_ml: string; readonly pid: number | null } | null;
    };
  readonly versions: { readonly laya_artifacts: string; readonly onnxruntime: string; readonly node: string };
}

export function infoOf(model: OpenModel): LayaInfo {
  const { spec, device, graph, cpu, loads, aneDevice, ane } = model;
  const session = aneDevice?.current;
  const excluded = device === 'cpu' ? 'cpu_requested' : graph === 'any-length' ? 'any_length_requested' : undefined;
  const absent = { status: 'unavailable', reason: excluded ?? ane.absence, error: null, restarts: 0 } as const;
  const serves = device !== 'ane' && (model.hasDense || model.artifacts.size > 0);
  return {
    ...{ model: spec.name, model_revision: spec.revision, device, graph },
    cpu: { status: serves ? 'ready' : 'unavailable', ...workOf(loads.cpu, cpu.loaded()) },
    ane: {
      ...(aneDevice?.status ?? absent),
      ...workOf(loads.ane, session ? [...session.models.keys()] : []),
      probe: session ? { version: session.version, core_ml: session.coreMl, pid: session.pid ?? null } : null,
    },
    versions: {
      laya_artifacts: versionIn(join(packageRoot(), 'package.json')),
      onnxruntime: versionIn(createRequire(import.meta.url).resolve('onnxruntime-node/package.json')),
      node: process.versions.node,
    },
  };
}

const workOf = ({ length, backlogMs }: DeviceLoad, loaded: readonly (number | 'any')[]): DeviceWork => ({
  queue_length: length,
  backlog_ms: milliseconds(backlogMs),
  loaded: loaded.map((one) => (one === 'any' ? one : `L${one}`)),
});

const versionIn = (path: string): string => (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
