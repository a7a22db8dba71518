// A worker that speaks the protocol without a model. The body of a job says what to do.
import { parentPort, workerData } from 'node:worker_threads';

const { models, checkpoint } = workerData;
const placement = { device: 'cpu', reason: 'cpu_requested', revision: 'r' };
const facts = { model: models[0], device: 'cpu', questions: 1, inputTokens: 1, truncated: false, latencyMs: 1 };
if (checkpoint === 'crash') process.exit(3);

parentPort.on('message', ({ kind, job, id }) => {
  if (kind === 'cancel') return fault(id, 'failed', 'ABORTED');
  if (kind === 'close') return parentPort.close();
  const answer = (body) => parentPort.postMessage({ kind: 'answer', id: job.id, body, facts });
  if (job.body === 'crash') throw new Error('the worker breaks');
  if (job.body === 'exit') process.exit(7);
  if (job.body === 'refuse') return fault(job.id, 'refused', 'QUESTION_INVALID');
  if (job.body === 'fail') return fault(job.id, 'failed', 'MIL_RUN');
  if (job.body.startsWith('wait:')) return void waitFor(job.body.slice(5), () => answer('waited'));
  answer(job.body);
});
const fault = (id, kind, code) => parentPort.postMessage({ kind: 'fault', id, fault: { kind, code, message: 'm' } });

/** Answers once the file is there. */
function waitFor(path, then) {
  import('node:fs').then(({ existsSync }) => {
    const look = setInterval(() => {
      if (!existsSync(path)) return;
      clearInterval(look);
      then();
    }, 5);
  });
}

for (const model of models) {
  if (checkpoint === 'none')
    parentPort.postMessage({
      kind: 'unavailable',
      model,
      fault: { kind: 'failed', code: 'ARTIFACT_MISSING', message: 'm' },
    });
  else parentPort.postMessage({ kind: 'ready', model, placement });
}
parentPort.postMessage({ kind: 'opened' });
