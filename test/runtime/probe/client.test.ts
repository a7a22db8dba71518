import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { roundToHalf } from '../../../runtime/float16.js';
import { openMlmodelc } from '../../../runtime/mil/session.js';
import type { ProbeError } from '../../../runtime/probe/errors.js';
import { SMALL, writeSmallModel } from '../../probe/small-model.js';
import { codeOf } from '../../workspace.js';
import { TRACED, tracedRows } from '../mil/traced.js';
import { ANSWER, INPUTS, smallProbe } from './small-probe.js';

const { folder, opened } = smallProbe();

/** Milliseconds after which a probe that hangs is given up; long enough for the request before. */
const GIVEN_UP = 3000;

describe('a probe', () => {
  test('answers like the model itself, for as long as it is open', async () => {
    const probe = await opened();
    const model = probe.models[0]!;
    expect({ inputs: model.inputs, outputs: model.outputs }).toEqual(SMALL);
    expect(probe.hello).toMatchObject({ coreMl: 'simulated', protocol: 1, units: 'cpuAndNeuralEngine' });
    for (let i = 0; i < 3; i++) expect({ ...(await model.run(INPUTS)) }).toEqual(ANSWER);
    const { predicted, waited } = await model.predict(INPUTS);
    expect([predicted, waited]).toEqual([1, 0]);
    await model.release();
    await model.release();
    expect(await probe.ended).toBeNull();
    expect(await codeOf(() => model.run(INPUTS))).toBe('PROBE_CLOSED');
  });

  test('gives what the portable executor gives on rounded inputs', async () => {
    const probe = await opened({ models: 'portable' }, { models: [TRACED] });
    const direct = await openMlmodelc(TRACED, { threads: 1 });
    const { inputs } = tracedRows()[0]!;
    const found = await probe.models[0]!.run(inputs);
    const rounded = Object.fromEntries(Object.entries(inputs).map(([name, data]) => [name, roundToHalf(data.slice())]));
    const expected = await direct.run(rounded);
    for (const [name, data] of Object.entries(expected)) expect(found[name]).toEqual(roundToHalf(data));
    await Promise.all([probe.close(), direct.release()]);
  });

  test('keeps many requests apart, in several models', async () => {
    const other = await writeSmallModel(folder(), 'other.mlmodelc', {
      inputs: [{ name: 'x', shape: [2] }],
      outputs: [{ name: 'out', shape: [2] }],
    });
    const probe = await opened({}, { models: [await writeSmallModel(folder()), other], queue: 500 });
    const numbers = Array.from({ length: 200 }, (_, i) => i);
    const answers = await Promise.all(numbers.map((i) => probe.models[1]!.run({ x: Float32Array.of(i, -i) })));
    expect(answers.map(({ out }) => Array.from(out!))).toEqual(numbers.map((i) => [i, -i]));
    expect({ ...(await probe.models[0]!.run(INPUTS)) }).toEqual(ANSWER);
    await probe.models[0]!.release();
    expect((await probe.models[1]!.run({ x: Float32Array.of(1, 2) })).out).toEqual(Float32Array.of(1, 2));
    await probe.close();
    await probe.close();
  });

  test('takes what the caller had in its arrays when it asked', async () => {
    const gate = join(folder(), 'go');
    const probe = await opened({ gates: [{ at: 1, file: gate }] });
    const inputs = { a: INPUTS.a.slice(), b: INPUTS.b.slice() };
    const answer = probe.models[0]!.run(inputs);
    inputs.a.fill(7);
    writeFileSync(gate, '');
    expect({ ...(await answer) }).toEqual(ANSWER);
    await probe.close();
  });

  test('takes FP16 bits as they are', async () => {
    const probe = await opened();
    const a = Uint16Array.from({ length: 33 }, (_, i) => 0x3c00 + i);
    const b = Uint16Array.of(0xfc00, 0x0001);
    const { y } = await probe.models[0]!.run({ a, b });
    expect(y).toEqual(Float32Array.of(1, 2 ** -24, 1 + 2 / 1024, 2 ** -24));
    await probe.close();
  });

  test("refuses inputs that are not the model's, and goes on", async () => {
    const probe = await opened();
    const run = (inputs: object) => codeOf(() => probe.models[0]!.run(inputs as Record<string, Float32Array>));
    expect(await run({ a: INPUTS.a })).toBe('PROBE_INPUT');
    expect(await run({ ...INPUTS, c: INPUTS.b })).toBe('PROBE_INPUT');
    expect(await run({ ...INPUTS, b: Float32Array.of(1) })).toBe('PROBE_INPUT');
    expect(await run({ ...INPUTS, b: [1, 2] })).toBe('PROBE_INPUT');
    expect(await run(Object.create(INPUTS))).toBe('PROBE_INPUT');
    expect({ ...(await probe.models[0]!.run(INPUTS)) }).toEqual(ANSWER);
    await probe.close();
  });
});

describe('a request', () => {
  test('that was cancelled rejects at once, and the others are answered', async () => {
    const gate = join(folder(), 'go');
    const probe = await opened({ gates: [{ at: 1, file: gate }], queue: 2 });
    const model = probe.models[0]!;
    const stops = [0, 1, 2].map(() => new AbortController());
    const running = stops.map(({ signal }) => model.run(INPUTS, signal));
    const last = model.run(INPUTS);
    for (const [i, stop] of stops.entries()) stop.abort(new Error(`stop ${i}`));
    const outcomes = await Promise.allSettled(running);
    expect(outcomes.map((one) => (one as PromiseRejectedResult).reason.message)).toEqual([
      'stop 0',
      'stop 1',
      'stop 2',
    ]);
    writeFileSync(gate, '');
    expect({ ...(await last) }).toEqual(ANSWER);
    await expect(model.run(INPUTS, AbortSignal.abort(new Error('before')))).rejects.toThrow('before');
    await probe.close();
  });

  test('beyond the bound of waiting ones is refused', async () => {
    const gate = join(folder(), 'go');
    const probe = await opened({ gates: [{ at: 1, file: gate }], queue: 2 }, { queue: 1 });
    const model = probe.models[0]!;
    const taken = [1, 2, 3].map(() => model.run(INPUTS));
    expect(await codeOf(() => model.run(INPUTS))).toBe('PROBE_BUSY');
    writeFileSync(gate, '');
    expect(await Promise.all(taken)).toHaveLength(3);
    await probe.close();
  });

  test('under way is answered when the probe is closed; one that waits is refused', async () => {
    const gate = join(folder(), 'go');
    const probe = await opened({ gates: [{ at: 1, file: gate }], queue: 1 });
    const [first, second] = [probe.models[0]!.run(INPUTS), codeOf(() => probe.models[0]!.run(INPUTS))];
    const closed = probe.close();
    expect(await second).toBe('PROBE_CLOSED');
    writeFileSync(gate, '');
    expect({ ...(await first) }).toEqual(ANSWER);
    await closed;
    expect(await probe.ended).toBeNull();
  });
});

describe('a probe that fails a request', () => {
  test.each([
    ['kill', 'PROBE_CRASHED'],
    ['exit', 'PROBE_CRASHED'],
    ['hang', 'PROBE_HUNG'],
    ['garbage', 'PROBE_PROTOCOL'],
    ['oversized', 'PROBE_PROTOCOL'],
    ['truncated', 'PROBE_PROTOCOL'],
    ['wrong-id', 'PROBE_PROTOCOL'],
    ['wrong-length', 'PROBE_PROTOCOL'],
  ] as const)('by %s: everything under way fails with %s, and another can be opened', async (does, code) => {
    const switches = { faults: [{ at: 2, does }] };
    const probe = await opened(switches, does === 'hang' ? { patience: { answer: GIVEN_UP } } : {});
    const model = probe.models[0]!;
    await model.run(INPUTS);
    const codes = await Promise.all([1, 2, 3].map(() => codeOf(() => model.run(INPUTS))));
    expect(codes).toEqual([code, code, code]);
    expect((await probe.ended)?.code).toBe(code);
    const later = await model.run(INPUTS).catch((error: ProbeError) => error);
    expect(later).toMatchObject({ code: 'PROBE_CLOSED', found: code });
    await probe.close();
    const again = await opened();
    expect({ ...(await again.models[0]!.run(INPUTS)) }).toEqual(ANSWER);
    await again.close();
  });

  test('by answering twice is not trusted any more', async () => {
    const probe = await opened({ faults: [{ at: 1, does: 'twice' }] });
    expect({ ...(await probe.models[0]!.run(INPUTS)) }).toEqual(ANSWER);
    expect((await probe.ended)?.code).toBe('PROBE_PROTOCOL');
  });
});
