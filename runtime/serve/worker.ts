import { parentPort, workerData } from 'node:worker_threads';
import { LayaError } from '../../schemas/errors.js';
import { loadDetector } from '../language/detect.js';
import { Laya } from '../laya.js';
import type { OpenOptions } from '../open.js';
import { readAsk } from './ask.js';
import {
  type AneHealth,
  type Fault,
  type FromWorker,
  type Job,
  type Placement,
  sharedNow,
  type ToWorker,
  type WorkerOrder,
} from './protocol.js';
import { factsOf, responseBody } from './respond.js';
import { route } from './route.js';
import { AUTO_MODELS } from './target.js';

/**
 * Opens each model and asks it something, then answers jobs until it is told to close: one after the other, or at the
 * same time where the Neural Engine may work beside the cpu; each device has a queue of its own.
 */
function main(port: NonNullable<typeof parentPort>, order: WorkerOrder): void {
  const tell = (message: FromWorker): void => port.postMessage(message);
  const models = new Map<string, Laya>();
  const jobs = new Map<number, AbortController>();
  const watch = watchAne(models, tell);
  let closing = false;
  const opened = (async () => {
    if (AUTO_MODELS.every((model) => order.models.includes(model))) await loadDetector();
    for (const model of order.models) if (!closing) tell(await openOne(models, model, order));
    watch();
    tell({ kind: 'opened' });
  })();
  let last = opened;
  const work = async (job: Job): Promise<void> => {
    const { signal } = jobs.set(job.id, new AbortController()).get(job.id)!;
    const message = await answer(models, job, signal);
    jobs.delete(job.id);
    // First what it did to the Neural Engine: whoever has the answer finds `/health` to agree with it.
    watch();
    tell(message);
  };
  port.on('message', (message: ToWorker) => {
    if (message.kind === 'cancel') jobs.get(message.id)?.abort();
    else if (message.kind === 'job') {
      const { job } = message;
      const usesAne = [...models.values()].some((laya) => laya.info().ane.status !== 'unavailable');
      const ended = (usesAne ? opened : last).then(() => work(job));
      last = Promise.all([last, ended]).then(() => undefined);
    } else {
      closing = true;
      last = last
        .then(() => closeAll(models))
        .then(watch)
        .finally(() => port.close());
    }
  });
}

async function openOne(models: Map<string, Laya>, model: string, order: WorkerOrder): Promise<FromWorker> {
  try {
    const laya = await Laya.open(model, openOptions(order));
    models.set(model, laya);
    return { kind: 'ready', model, placement: await warm(laya) };
  } catch (error) {
    await models.get(model)?.close();
    models.delete(model);
    return { kind: 'unavailable', model, fault: faultOf(error) };
  }
}

/** What is lost is told by `watchAne`, in the server's own log. */
function openOptions({ models: _, ...options }: WorkerOrder): OpenOptions {
  return { ...options, onWarning: () => undefined };
}

/** Loads and runs everything that may answer, then learns from an answer where the model runs. */
async function warm(laya: Laya): Promise<Placement> {
  await laya.warmUp();
  const { runtime } = await laya.predict({ context: 'An order.', questions: ['Is this about an order?'] });
  const { device, routing_reason: reason, model_revision: revision } = runtime;
  return { device, reason, revision, ane: aneHealth(laya) };
}

function aneHealth(laya: Laya): AneHealth {
  const { status, reason } = laya.info().ane;
  if (status === 'ready') return { status };
  return { status: status === 'starting' ? 'warming' : 'unavailable', ...(reason === null ? {} : { reason }) };
}

/** Tells when the Neural Engine's state or processes have changed since they were told last. */
function watchAne(models: ReadonlyMap<string, Laya>, tell: (message: FromWorker) => void): () => void {
  const told = new Map<string, string>();
  let processes = '';
  return () => {
    const pids = [...models.values()].flatMap((laya) => laya.info().ane.probe?.pid ?? []);
    if (pids.join() !== processes) tell({ kind: 'processes', pids });
    processes = pids.join();
    for (const [model, laya] of models) {
      const ane = aneHealth(laya);
      const before = told.get(model);
      told.set(model, ane.status);
      if (before !== undefined && before !== ane.status) tell({ kind: 'ane', model, ane });
    }
  };
}

async function answer(models: ReadonlyMap<string, Laya>, job: Job, signal: AbortSignal): Promise<FromWorker> {
  const { id } = job;
  const queueMs = Math.max(0, sharedNow() - job.since);
  try {
    signal.throwIfAborted();
    const { state, questions, minConfidence } = readAsk(job.body);
    const routed = await route(state, questions, job.target);
    const laya = models.get(routed.model);
    if (laya === undefined) return { kind: 'fault', id, fault: unavailable(routed.model) };
    const threshold = minConfidence === undefined ? {} : { minConfidence };
    const result = await laya.predict({ context: state, questions, ...threshold }, { signal });
    const waitMs = queueMs + result.runtime.queue_wait_ms;
    return { kind: 'answer', id, body: responseBody(result, routed, job, waitMs), facts: factsOf(result, waitMs) };
  } catch (error) {
    return { kind: 'fault', id, fault: faultOf(error) };
  }
}

const unavailable = (model: string): Fault => ({
  kind: 'unavailable',
  code: 'MODEL_UNAVAILABLE',
  message: `model ${model} is unavailable on this server`,
});

/** Errors by class that are no failure of the inference. */
const KINDS: Readonly<Record<string, Fault['kind']>> = {
  InvalidRequestError: 'refused',
  UnsupportedShapeError: 'refused',
  ArtifactMissingError: 'unavailable',
  ArtifactRevisionError: 'unavailable',
  ArtifactIntegrityError: 'unavailable',
  ArtifactParityError: 'unavailable',
  BackendUnavailableError: 'unavailable',
};

/** What the client did wrong goes back to it in full; anything else is for the log. */
function faultOf(error: unknown): Fault {
  if (!(error instanceof LayaError)) {
    const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { kind: 'failed', code: 'UNEXPECTED', message };
  }
  const { code, message, where, expected, hint } = error;
  return {
    kind: isLost(error) ? 'lost' : kindOf(error),
    code,
    message,
    ...(where === undefined ? {} : { where }),
    ...(expected === undefined ? {} : { expected }),
    ...(hint === undefined ? {} : { hint }),
  };
}

/** A prediction that the Neural Engine itself refuses is a failure. */
function kindOf({ name, code }: LayaError): Fault['kind'] {
  const isOther = name === 'BackendUnavailableError' && !['QUEUE_FULL', 'CLOSED', 'OFFLINE'].includes(code);
  return isOther ? 'failed' : (KINDS[name] ?? 'failed');
}

/** The Neural Engine's process is gone, or has not come back yet. */
const isLost = ({ name, code }: LayaError): boolean =>
  name === 'BackendUnavailableError' && (code === 'DEVICE_UNAVAILABLE' || code.startsWith('PROBE_'));

async function closeAll(models: ReadonlyMap<string, Laya>): Promise<void> {
  await Promise.allSettled([...models.values()].map((laya) => laya.close()));
}

if (parentPort) main(parentPort, workerData as WorkerOrder);
