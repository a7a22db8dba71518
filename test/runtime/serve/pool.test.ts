import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type Answered, Pool, type PoolOptions } from '../../../runtime/serve/pool.js';
import type { WorkerEvent } from '../../../runtime/serve/slot.js';
import { codeOf, workspace } from '../../workspace.js';

const url = pathToFileURL(join(process.cwd(), 'test/runtime/serve/fake-worker.mjs'));
const newFolder = workspace();
const pools: Pool[] = [];
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.kill();
});

interface Change extends Partial<PoolOptions> {
  /** What the stand-in does at its start. */
  readonly start?: string;
}

function newPool({ start = '', ...change }: Change = {}): { pool: Pool; events: WorkerEvent[] } {
  const events: WorkerEvent[] = [];
  const order = { models: ['laya-tiny'], device: 'cpu' as const, threads: 1, checkpoint: start };
  const pool = new Pool({
    workers: 1,
    order,
    queue: 2,
    url,
    restartMs: 1,
    emit: (event) => events.push(event),
    ...change,
  });
  pools.push(pool);
  return { pool, events };
}

const never = new AbortController().signal;
const target = { kind: 'default', model: 'laya-tiny' } as const;
const ask = (pool: Pool, body: string, signal = never): Promise<Answered> =>
  pool.ask({ body, target, requestId: 'r' }, signal);
const codeFrom = (answered: Promise<unknown>): Promise<string> => codeOf(() => answered);

describe('a pool of workers', () => {
  it('answers in order', async () => {
    const { pool } = newPool();
    await pool.ready();
    const answers = await Promise.all([ask(pool, 'a'), ask(pool, 'b'), ask(pool, 'c')]);
    expect(answers.map(({ body }) => body)).toEqual(['a', 'b', 'c']);
  });

  it('tells refusals from failures, and never says why it failed', async () => {
    const { pool } = newPool();
    await pool.ready();
    expect(await codeFrom(ask(pool, 'refuse'))).toBe('REQUEST_REFUSED');
    const failed = await ask(pool, 'fail').catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'INFERENCE_FAILED', message: 'inference failed', status: 500 });
    expect((await ask(pool, 'after')).body).toBe('after');
  });

  it('tells what a worker has no room, time or device for, and when to come again', async () => {
    const { pool } = newPool();
    await pool.ready();
    const refusalOf = (body: string) => ask(pool, body).catch((error: unknown) => error);
    expect(await refusalOf('full')).toMatchObject({ code: 'BUSY', status: 503, retryAfter: 1 });
    expect(await refusalOf('closed')).toMatchObject({ code: 'STOPPING', status: 503, retryAfter: 1 });
    expect(await refusalOf('lost')).toMatchObject({ code: 'DEVICE_UNAVAILABLE', status: 503, retryAfter: 1 });
  });

  it('refuses what does not fit the queue, at once', async () => {
    const go = join(newFolder(), 'go');
    const { pool } = newPool();
    await pool.ready();
    const first = ask(pool, `wait:${go}`);
    const waiting = [ask(pool, 'a'), ask(pool, 'b')];
    expect(await codeFrom(ask(pool, 'c'))).toBe('BUSY');
    expect(pool.status()).toMatchObject({ queued: 2, running: 1 });
    writeFileSync(go, '');
    expect((await Promise.all([first, ...waiting])).map(({ body }) => body)).toEqual(['waited', 'a', 'b']);
  });

  it('takes an abandoned request out of the queue', async () => {
    const go = join(newFolder(), 'go');
    const { pool } = newPool();
    await pool.ready();
    const first = ask(pool, `wait:${go}`);
    const client = new AbortController();
    const abandoned = [codeFrom(ask(pool, 'crash', client.signal)), codeFrom(ask(pool, 'crash', client.signal))];
    client.abort();
    expect(await Promise.all(abandoned)).toEqual(['CLIENT_GONE', 'CLIENT_GONE']);
    expect(pool.status().queued).toBeLessThan(2);
    writeFileSync(go, '');
    expect((await first).body).toBe('waited');
    expect((await ask(pool, 'still here')).body).toBe('still here');
  });

  it('cancels the job of a client that left', async () => {
    const { pool } = newPool();
    await pool.ready();
    const client = new AbortController();
    const abandoned = codeFrom(ask(pool, 'wait:/nowhere/at/all', client.signal));
    const next = ask(pool, 'next');
    client.abort();
    expect([await abandoned, (await next).body]).toEqual(['CLIENT_GONE', 'next']);
  });

  it('finishes what runs and waits before it closes', async () => {
    const go = join(newFolder(), 'go');
    const { pool } = newPool();
    await pool.ready();
    const answers = Promise.all([ask(pool, `wait:${go}`), ask(pool, 'b')]);
    const closed = pool.close();
    writeFileSync(go, '');
    expect((await answers).map(({ body }) => body)).toEqual(['waited', 'b']);
    await closed;
  });
});

// Fault S18: a worker that is not ready yet, that dies, that never starts, that is closed while it starts.
describe('the life of a worker', () => {
  it('is warming until its models are open', async () => {
    const { pool, events } = newPool();
    expect(pool.status().models.get('laya-tiny')).toEqual({ status: 'warming' });
    expect(await codeFrom(ask(pool, 'a'))).toBe('MODEL_WARMING');
    await pool.ready();
    expect(pool.status().models.get('laya-tiny')).toMatchObject({ status: 'ready', device: 'cpu' });
    expect(events.map(({ kind }) => kind)).toEqual(['model_ready']);
  });

  it.each(['crash', 'exit'])('fails the job it ran, keeps what waited, and is replaced: %s', async (how) => {
    const { pool, events } = newPool();
    await pool.ready();
    const lost = codeFrom(ask(pool, how));
    const waited = ask(pool, 'waited for the next worker');
    expect(await lost).toBe('WORKER_LOST');
    expect((await waited).body).toBe('waited for the next worker');
    expect(events.map(({ kind }) => kind)).toEqual(['model_ready', 'worker_lost', 'model_ready']);
    expect(pool.status().restarts).toBe(1);
  });

  it('leaves the others at work', async () => {
    const { pool } = newPool({ workers: 2 });
    await pool.ready();
    const [lost, other] = [codeFrom(ask(pool, 'crash')), ask(pool, 'other')];
    expect([await lost, (await other).body]).toEqual(['WORKER_LOST', 'other']);
  });

  it('is unavailable when it can not start', async () => {
    const { pool, events } = newPool({ start: 'crash' });
    expect(await codeOf(() => pool.ready())).toBe('NO_MODEL');
    expect(pool.status().models.get('laya-tiny')).toEqual({ status: 'unavailable', reason: 'WORKER_LOST' });
    expect(await codeFrom(ask(pool, 'a'))).toBe('MODEL_UNAVAILABLE');
    expect(events.every(({ kind }) => kind === 'worker_lost')).toBe(true);
  });

  it('tells why a model can not be opened', async () => {
    const { pool } = newPool({ start: 'none' });
    expect(await codeOf(() => pool.ready())).toBe('NO_MODEL');
    expect(pool.status().models.get('laya-tiny')).toEqual({ status: 'unavailable', reason: 'ARTIFACT_MISSING' });
  });

  it('ends when it is closed while it starts', async () => {
    const { pool, events } = newPool({ workers: 2 });
    await pool.close();
    expect(events.filter(({ kind }) => kind === 'worker_lost')).toEqual([]);
    expect(await codeFrom(ask(pool, 'a'))).not.toBe('no error');
  });

  it('refuses what waits when it is killed', async () => {
    const { pool } = newPool();
    await pool.ready();
    const [running, waiting] = [codeFrom(ask(pool, 'wait:/nowhere/at/all')), codeFrom(ask(pool, 'b'))];
    await pool.kill();
    expect([await running, await waiting]).toEqual(['WORKER_LOST', 'STOPPING']);
  });
});
