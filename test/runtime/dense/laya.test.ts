import { randomBytes } from 'node:crypto';
import { appendFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { denseFolder } from '../../../registry/dense.js';
import { findModel } from '../../../registry/models.js';
import { Laya, type RequestTrace } from '../../../runtime/index.js';
import { stringifyJson, toPlain } from '../../../schemas/json.js';
import { registerLayaTiny, registerLayaTinyDense } from '../../registered.js';
import { codeOf } from '../../workspace.js';
import { CASES } from '../laya-tiny.js';

const root = join(tmpdir(), `laya-test-${randomBytes(6).toString('hex')}`);
const open = (options = {}) => Laya.open('laya-tiny', { root, threads: 1, ...options });
const two = ['Is it about billing?', 'Is it urgent?'] as const;

beforeAll(async () => {
  await registerLayaTiny(root, [64]);
  await registerLayaTinyDense(root);
}, 300_000);
afterAll(() => rm(root, { recursive: true, force: true }));

describe('Laya with an any-length graph', () => {
  it('answers every golden request as upstream does, with four equal decimals but for the last', async () => {
    await using laya = await open({ graph: 'any-length' });
    for (const { name, state, questions, minConfidence, answers } of CASES) {
      const found = (await laya.predict({ context: state, questions, minConfidence })).toJson().get('answers')!;
      const numbers = (text: string) => [...text.matchAll(/-?\d+\.\d+/g)].map(([one]) => Number(one));
      const [ours, theirs] = [stringifyJson(found), stringifyJson(answers)];
      expect([name, ours.replaceAll(/-?\d+\.\d+/g, '0')]).toEqual([name, theirs.replaceAll(/-?\d+\.\d+/g, '0')]);
      const reference = numbers(theirs);
      for (const [i, value] of numbers(ours).entries()) expect(Math.abs(value - reference[i]!)).toBeLessThan(2.1e-4);
    }
    expect(Object.keys(toPlain(CASES[0]!.answers) as object).length).toBeGreaterThan(0);
  }, 120_000);

  it('serves several questions in batches and long texts, and tells why', async () => {
    await using laya = await open();
    const several = (await laya.predict({ context: 'I was charged twice.', questions: two })).runtime;
    expect(several).toMatchObject({
      graph: 'dense-any',
      routing_reason: 'multiple_questions',
      buckets: [],
      dtype: 'float32',
      compute_units: 'PORTABLE_CPU',
    });
    expect(several.artifact_revision).toMatch(/^any:[0-9a-f]{12}$/);
    const long = await laya.predict({ context: 'invoice '.repeat(5000), questions: [two[0]] });
    expect(long.runtime).toMatchObject({ routing_reason: 'bucket_artifact_unavailable', sequence_length: 256 });
    const short = await laya.predict({ context: 'invoice', questions: [two[0]] });
    expect(short.runtime).toMatchObject({ graph: 'dense-any', buckets: [], routing_reason: 'ane_runtime_unavailable' });
    expect(laya.info().cpu.loaded).toEqual(['any']);
  });

  it('gives more than 32 options, which no bucket artifact takes', async () => {
    const criteria = Array.from({ length: 40 }, (_, i) => `l${i}`);
    const request = { context: 'x', questions: { q: { type: 'choice', instructions: 'Which?', criteria } } } as const;
    await using laya = await open();
    const { answers, runtime } = await laya.predict(request);
    expect(Object.keys(answers.q.probabilities)).toHaveLength(40);
    expect(runtime.graph).toBe('dense-any');
    await using buckets = await open({ graph: 'buckets' });
    expect(['TOO_MANY_OPTIONS_FOR_GRAPH', 'ARTIFACT_MISSING']).toContain(await codeOf(() => buckets.predict(request)));
  });

  // S19
  it('does not take part where bucket artifacts were asked for', async () => {
    await using laya = await open({ graph: 'buckets' });
    expect((await laya.predict({ context: 'x', questions: two })).runtime.buckets).toEqual([64]);
    expect(await codeOf(() => laya.predict({ context: 'invoice '.repeat(5000), questions: two }))).toBe(
      'ARTIFACT_MISSING',
    );
    expect(await codeOf(() => Laya.open('laya-tiny', { root: `${root}-none`, graph: 'any-length' }))).toBe(
      'ARTIFACT_MISSING',
    );
    expect(await codeOf(() => open({ device: 'gpu' }))).toBe('DEVICE_UNAVAILABLE');
  });

  it('takes requests at once, refuses too many, finishes them when it is closed, and takes no more', async () => {
    const laya = await open({ queueLimit: 2 });
    await laya.warmUp();
    const ask = () => laya.predict({ context: 'I was charged twice.', questions: two });
    const results = await Promise.allSettled([ask(), ask(), ask(), ask(), ask()]);
    const refused = results.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []));
    expect(new Set(refused)).toEqual(new Set(['QUEUE_FULL']));
    const [running, closing] = [ask(), laya.close()];
    const [outcome] = await Promise.allSettled([running]);
    if (outcome.status === 'rejected') expect(outcome.reason.code).toBe('CLOSED');
    await closing;
    expect(await codeOf(ask)).toBe('CLOSED');
    await laya.close();
  });

  it('traces each request, and gives an aborted one its reason', async () => {
    await using laya = await open();
    const traces: RequestTrace[] = [];
    const onTrace = (trace: RequestTrace) => void traces.push(trace);
    await laya.predict({ context: 'x', questions: two }, { onTrace });
    const reason = new Error('left');
    const aborted = laya.predict({ context: 'x', questions: two }, { onTrace, signal: AbortSignal.abort(reason) });
    await expect(aborted).rejects.toBe(reason);
    expect(await codeOf(() => laya.predict({ context: null, questions: two }, { onTrace }))).toBe('STATE_INVALID');
    expect(traces.map(({ graph, question_count, error }) => [graph, question_count, error])).toEqual([
      ['dense-any', 2, null],
      [null, 0, 'Error'],
      [null, 0, 'STATE_INVALID'],
    ]);
    const [{ prepare_ms, queue_wait_ms, run_ms, latency_ms }] = traces as [RequestTrace];
    expect(prepare_ms + queue_wait_ms + run_ms).toBeLessThanOrEqual(latency_ms + 0.01);
  });

  it('does not answer from a graph with a changed byte', async () => {
    const data = join(denseFolder(root, findModel('laya-tiny')), 'model', 'model.onnx.data');
    await appendFile(data, 'x');
    await using laya = await open();
    expect(await codeOf(() => laya.predict({ context: 'x', questions: two }))).toBe('TREE_MISMATCH');
  });
});
