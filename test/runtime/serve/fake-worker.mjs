// A worker that speaks the protocol without a model. The body of a job says what to do.
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

const { models, checkpoint } = workerData;
const ane = { status: 'unavailable', reason: 'cpu_requested' };
const placement = { device: 'cpu', reason: 'cpu_requested', revision: 'r', ane };
const facts = {
  model: models[0],
  device: 'cpu',
  questions: 1,
  inputTokens: 1,
  truncated: false,
  latencyMs: 1,
  queueMs: 0,
};
const cancelled = new Set();
if (checkpoint === 'crash') process.exit(3);

const fault = (id, kind, code) => parentPort.postMessage({ kind: 'fault', id, fault: { kind, code, message: 'm' } });

async function work({ id, body }) {
  const path = body.startsWith('wait:') ? body.slice(5) : undefined;
  while (path !== undefined && !existsSync(path) && !cancelled.has(id)) await pause(5);
  if (cancelled.has(id)) fault(id, 'failed', 'ABORTED');
  else if (body === 'crash') throw new Error('the worker breaks');
  else if (body === 'exit') process.exit(7);
  else if (body === 'refuse') fault(id, 'refused', 'QUESTION_INVALID');
  else if (body === 'fail') fault(id, 'failed', 'MIL_RUN');
  else if (body === 'lost') fault(id, 'lost', 'PROBE_CRASHED');
  else if (body === 'full' || body === 'closed') fault(id, 'unavailable', body === 'full' ? 'QUEUE_FULL' : 'CLOSED');
  else parentPort.postMessage({ kind: 'answer', id, body: path === undefined ? body : 'waited', facts });
}

let last = Promise.resolve();
parentPort.on('message', ({ kind, job, id }) => {
  if (kind === 'cancel') cancelled.add(id);
  else if (kind === 'job') last = last.then(() => work(job));
  else last.then(() => parentPort.close());
});

for (const model of models) {
  const none = { kind: 'failed', code: 'ARTIFACT_MISSING', message: 'm' };
  if (checkpoint === 'none') parentPort.postMessage({ kind: 'unavailable', model, fault: none });
  else parentPort.postMessage({ kind: 'ready', model, placement });
}
parentPort.postMessage({ kind: 'opened' });
