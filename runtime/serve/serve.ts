import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { findModel } from '../../registry/models.js';
import type { Environment } from '../../registry/paths.js';
import type { ProbeSettings } from '../ane/program.js';
import type { Device, GraphChoice } from '../plan.js';
import { SERVER_LIMITS, type ServerLimits } from './limits.js';
import type { Log } from './log.js';
import { Meter } from './meter.js';
import { Pool } from './pool.js';
import { type RunningServer, startServer } from './server.js';
import type { WorkerEvent } from './slot.js';
import { AUTO, AUTO_MODELS, type Offer } from './target.js';

export interface ServeOptions {
  /** Models by name, and `auto`; the first one answers requests that name none. */
  readonly models: readonly string[];
  readonly host: string;
  readonly port: number;
  readonly device: Device;
  /** Which graphs may answer; default: as `predict` chooses. */
  readonly graph?: GraphChoice;
  /** laya-probe for the Neural Engine; default: the one in the tools cache, on a Mac. */
  readonly probe?: string | ProbeSettings;
  readonly allowRemote: boolean;
  readonly apiKey: string | undefined;
  /** Root of the artifact store; default: as the environment says. */
  readonly root?: string;
  readonly checkpoint?: string;
  /**
   * Requests answered at the same time; default: one a processor, at most 4. One where the Neural Engine may serve: each
   * worker would have a laya-probe of its own with all models in memory, on one and the same Neural Engine.
   */
  readonly workers?: number;
  /** Where laya-probe is looked for; default: the process's own. */
  readonly env?: Environment;
  readonly version: string;
  readonly log: Log;
  readonly limits?: Partial<ServerLimits>;
  /** The worker's module; default: the one beside this file. */
  readonly workerUrl?: URL;
}

export interface Served {
  readonly url: string;
  /** Waits until a model can answer. Throws ServeError NO_MODEL when none can. */
  ready(): Promise<void>;
  /** Finishes the requests in progress, then ends the workers; false when some had to be cut. */
  stop(): Promise<boolean>;
}

const MOST_WORKERS = 4;

/**
 * Starts workers and the HTTP server; it listens at once and refuses requests until its models are warm. Throws what
 * `startServer` throws.
 */
export async function serve(options: ServeOptions): Promise<Served> {
  const { log, device } = options;
  const meter = new Meter();
  const offer = offerOf(options.models);
  const processors = availableParallelism();
  const hasProbe = await mayUseAne(options);
  const workers = options.workers ?? (hasProbe ? 1 : Math.min(processors, MOST_WORKERS));
  const threads = Math.max(1, Math.floor(processors / workers));
  const { root, checkpoint, graph, probe, workerUrl, limits = {} } = options;
  const order = {
    models: offer.models,
    device,
    threads,
    ...(graph === undefined ? {} : { graph }),
    ...(probe === undefined ? {} : { probe }),
    ...(root === undefined ? {} : { root }),
    ...(checkpoint === undefined ? {} : { checkpoint }),
  };
  const emit = (event: WorkerEvent): void => report(event, log, meter);
  const queue = limits.pending ?? SERVER_LIMITS.pending;
  const pool = new Pool({ workers, order, queue, emit, ...(workerUrl === undefined ? {} : { url: workerUrl }) });
  const server = await startServer({ ...options, answerer: pool, offer, meter }).catch(async (error: unknown) => {
    await pool.kill();
    throw error;
  });
  log('info', 'listening', {
    url: server.url,
    models: offer.models,
    default_model: offer.defaultModel,
    workers,
    threads,
  });
  if (hasProbe && workers > 1) log('warning', 'several_probes', { workers, hint: 'they share one Neural Engine' });
  return { url: server.url, ready: () => pool.ready(), stop: () => stop(server, pool, log) };
}

/** True when workers may start laya-probe: it is there, and neither device nor graph excludes it. */
async function mayUseAne({ device, graph, probe, env = process.env }: ServeOptions): Promise<boolean> {
  if (device === 'cpu' || device === 'gpu' || graph === 'any-length') return false;
  const { findProgram } = await import('../ane/program.js');
  return findProgram(probe, env).then(
    ({ executable }) => existsSync(executable),
    () => false,
  );
}

/** The models behind the names, each once; `auto` stands for the two it chooses between. */
function offerOf(names: readonly string[]): Offer {
  const models = new Set(names.flatMap((name) => (name === AUTO ? AUTO_MODELS : [findModel(name).name])));
  const [first = AUTO] = names;
  return { models: [...models], defaultModel: first === AUTO ? AUTO : findModel(first).name };
}

async function stop(server: RunningServer, pool: Pool, log: Log): Promise<boolean> {
  log('info', 'stopping');
  const whole = await server.stop();
  await (whole ? pool.close() : pool.kill());
  log('info', 'stopped', { whole });
  return whole;
}

function report(event: WorkerEvent, log: Log, meter: Meter): void {
  const { worker } = event;
  if (event.kind === 'model_ready') {
    const { device, reason } = event.placement;
    log('info', event.kind, { worker, model: event.model, device, reason });
  } else if (event.kind === 'ane_changed') {
    const { status, reason } = event.ane;
    log(status === 'ready' ? 'info' : 'warning', event.kind, { worker, model: event.model, status, reason });
  } else if (event.kind === 'processes') {
    log('debug', event.kind, { worker, pids: event.pids.map(String) });
  } else if (event.kind === 'model_unavailable') {
    const { code, message } = event.fault;
    log('error', event.kind, { worker, model: event.model, code, message });
  } else {
    meter.workerLost();
    log('error', event.kind, { worker, error: event.error, restart_ms: event.restart_ms });
  }
}
