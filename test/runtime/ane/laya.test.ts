import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { codeOf } from '../../workspace.js';
import { CASES } from '../laya-tiny.js';
import { appleStores, asIfApple, isAlive, MANY, pidOf, SHORT } from './apple-store.js';

const { rooted, open, folder } = appleStores();

/** The first request of a session after the two that warm it. */
const FIRST = 3;

/** Lets the request at a gate go on. */
const go = (file: string): void => writeFileSync(file, '');

describe('a model on the Neural Engine', () => {
  it('answers as the portable executor does', async () => {
    const laya = await open(await rooted([64, 96]), {}, { device: 'ane' });
    const cpu = await open(await rooted([]), {}, { device: 'cpu', graph: 'buckets' });
    let compared = 0;
    for (const { state, questions, items } of CASES) {
      if (items.length === 0 || items.length > 6 || items.some(({ ids }) => ids.length > 96)) continue;
      const request = { context: state, questions };
      const [found, expected] = await Promise.all([laya.predict(request), cpu.predict(request)]);
      expect(found.answers).toEqual(expected.answers);
      expect(found.usage).toEqual(expected.usage);
      expect(found.runtime.buckets).toEqual(expected.runtime.buckets);
      compared += items.length;
    }
    expect(compared).toBeGreaterThan(40);
    await Promise.all([laya.close(), cpu.close()]);
  }, 120_000);

  it('records where and why each answer was made, once', async () => {
    const laya = await open(await rooted([64]));
    const runtimeOf = async (request: typeof SHORT) => (await laya.predict(request)).runtime;
    expect(await runtimeOf(SHORT)).toMatchObject({
      backend: 'simulated',
      device: 'ane',
      routing_reason: 'validated_short_single_question_path',
      device_reason: 'validated_short_single_question_path',
      graph: 'bc1s-masked',
      artifact_revision: expect.stringMatching(/^L64:[0-9a-f]{12}$/),
      compute_units: 'CPU_AND_NE',
      buckets: [64],
      dtype: 'float16',
      execution: 'workers',
      ane_queue_length: 0,
      ane_restarts: 0,
    });
    const onCpu = { backend: 'portable', device: 'cpu', compute_units: 'PORTABLE_CPU', execution: 'inline' };
    const several = { ...onCpu, graph: 'dense-any', routing_reason: 'multiple_questions' };
    expect(await runtimeOf(MANY)).toMatchObject({ ...several, device_reason: 'multiple_questions' });
    const middle = await runtimeOf({ ...SHORT, context: 'invoice '.repeat(60) });
    expect(middle).toMatchObject({ ...onCpu, graph: 'dense-any', routing_reason: 'ane_artifact_unavailable' });
    const long = await runtimeOf({ ...SHORT, context: 'invoice '.repeat(5000) });
    expect(long).toMatchObject({ ...onCpu, routing_reason: 'ane_artifact_unavailable', graph: 'dense-any' });
    expect(await runtimeOf({ ...SHORT, questions: [] })).toMatchObject({
      backend: 'none',
      device: 'none',
      device_reason: 'no_questions',
    });
    await laya.close();
  });

  it('tells what it is and how its devices do', async () => {
    const laya = await open(await rooted([64, 96]), {}, { device: 'ane' });
    const { pid, ...probe } = laya.info().ane.probe!;
    expect(probe).toEqual({ version: '0.1.0', core_ml: 'simulated' });
    expect(laya.info()).toMatchObject({
      model: 'laya-tiny',
      device: 'ane',
      cpu: { status: 'unavailable', loaded: [] },
      ane: { status: 'ready', reason: null, restarts: 0, queue_length: 0, loaded: ['L64', 'L96'] },
      versions: { onnxruntime: expect.stringMatching(/^\d+\./), laya_artifacts: expect.stringMatching(/^\d+\./) },
    });
    expect(isAlive(pid!)).toBe(true);
    await laya.close();
    expect(isAlive(pid!)).toBe(false);
    expect(laya.info().ane).toMatchObject({ status: 'closed', probe: null, loaded: [] });
  });

  it('keeps simultaneous requests apart in one process', async () => {
    const laya = await open(await rooted([64, 96]), {}, { device: 'ane' });
    const cpu = await open(await rooted([]), {}, { device: 'cpu' });
    const requests = Array.from({ length: 24 }, (_, i) => ({
      context: `Order ${i} was ${i % 2 ? 'charged twice' : 'late'}.`,
      questions: i % 3 ? ['Is this about billing?'] : ['Is this about billing?', 'Is it urgent?', 'Is it late?'],
    }));
    const pid = pidOf(laya);
    const found = await Promise.all(requests.map((request) => laya.predict(request)));
    const expected = await Promise.all(requests.map((request) => cpu.predict(request)));
    for (const [i, { answers, runtime }] of found.entries()) {
      expect(runtime.device_reason).toBe('ane_requested');
      for (const [id, { confidence }] of Object.entries(answers))
        expect(Math.abs(confidence - expected[i]!.answers[id]!.confidence)).toBeLessThan(0.02);
    }
    expect([pidOf(laya), laya.pending]).toEqual([pid, 0]);
    await Promise.all([laya.close(), cpu.close()]);
  });

  it('answers everything there where nothing of the cpu is registered', async () => {
    const root = await rooted([64, 96], ['artifacts']);
    const laya = await open(root);
    expect((await laya.predict(MANY)).runtime).toMatchObject({
      device: 'ane',
      routing_reason: 'cpu_artifact_unavailable',
      buckets: [64],
    });
    await laya.warmUp();
    await laya.close();
    expect(await codeOf(() => open(root, {}, { device: 'cpu' }))).toBe('COMPUTE_UNITS_MISMATCH');
  });

  it('shares an artifact with the cpu that both have proven', async () => {
    const root = await rooted([], ['artifacts']);
    await asIfApple(root, 64, {}, 'both');
    const laya = await open(root);
    expect((await laya.predict(SHORT)).runtime).toMatchObject({ device: 'ane', buckets: [64] });
    const several = {
      device: 'cpu',
      device_reason: 'multiple_questions',
      buckets: [64],
      compute_units: 'PORTABLE_CPU',
    };
    expect((await laya.predict(MANY)).runtime).toMatchObject(several);
    await laya.close();
  });

  it('may start behind, and answers on the cpu until then', async () => {
    const gate = join(folder(), 'go');
    const root = await rooted([64]);
    const laya = await open(root, { gates: [{ at: 'ready', file: gate }] }, { aneStartup: 'background' });
    expect((await laya.predict(SHORT)).runtime).toMatchObject({ device: 'cpu', device_reason: 'ane_starting' });
    expect(laya.info().ane).toMatchObject({ status: 'starting', reason: 'ane_starting', probe: null });
    go(gate);
    await laya.waitForAne();
    expect((await laya.predict(SHORT)).runtime.device).toBe('ane');
    await laya.close();
    const early = await open(root, { gates: [{ at: 'ready', file: `${gate}-never` }] }, { aneStartup: 'background' });
    const waiting = codeOf(() => early.waitForAne());
    await early.close();
    expect(await waiting).toBe('CLOSED');
  });
});

describe('the queue of the Neural Engine', () => {
  it('is bounded, and the cpu answers meanwhile', async () => {
    const gate = join(folder(), 'go');
    const laya = await open(await rooted([64]), { gates: [{ at: 2, file: gate }] }, { queueLimit: 1 });
    const taken = [laya.predict(SHORT), laya.predict(SHORT)];
    while (laya.info().ane.queue_length < 2) await laya.predict(MANY);
    expect(await codeOf(() => laya.predict(SHORT))).toBe('QUEUE_FULL');
    expect((await laya.predict(MANY)).runtime).toMatchObject({ device: 'cpu', ane_queue_length: 2 });
    go(gate);
    expect((await Promise.all(taken)).map(({ runtime }) => runtime.device)).toEqual(['ane', 'ane']);
    await laya.close();
  });

  it('lets a request leave that waits or runs, and goes on', async () => {
    const gate = join(folder(), 'go');
    const laya = await open(await rooted([64, 96]), { gates: [{ at: FIRST, file: gate }] }, { device: 'ane' });
    const [running, waiting] = [new AbortController(), new AbortController()];
    const queued = async (length: number): Promise<void> => {
      while (laya.info().ane.queue_length < length) await new Promise(setImmediate);
    };
    const left = [laya.predict(SHORT, { signal: running.signal })];
    await queued(1);
    left.push(laya.predict(SHORT, { signal: waiting.signal }));
    await queued(2);
    const last = laya.predict(SHORT);
    await queued(3);
    waiting.abort(new Error('waited'));
    await expect(left[1]).rejects.toThrow('waited');
    expect(laya.info().ane.queue_length).toBe(2);
    running.abort(new Error('ran'));
    await expect(left[0]).rejects.toThrow('ran');
    go(gate);
    expect((await last).runtime.device).toBe('ane');
    await laya.close();
  });

  it('is finished before the process ends, and nothing is left behind', async () => {
    const gate = join(folder(), 'go');
    const laya = await open(await rooted([64, 96]), { gates: [{ at: FIRST, file: gate }] }, { device: 'ane' });
    const pid = pidOf(laya);
    const answers = [laya.predict(MANY), laya.predict(SHORT)];
    const started = Promise.all(answers);
    while (laya.pending < 2) await Promise.race([started, new Promise(setImmediate)]);
    const closing = laya.close();
    expect(await codeOf(() => laya.predict(SHORT))).toBe('CLOSED');
    expect(isAlive(pid)).toBe(true);
    go(gate);
    expect((await started).map(({ runtime }) => runtime.device)).toEqual(['ane', 'ane']);
    await closing;
    expect(isAlive(pid)).toBe(false);
  });
});
