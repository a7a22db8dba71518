import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { roundToHalf } from '../../../runtime/float16.js';
import { openMlmodelc } from '../../../runtime/mil/session.js';
import { openProbe, type Probe, type ProbeOptions } from '../../../runtime/probe/client.js';
import type { ProbeError } from '../../../runtime/probe/errors.js';
import { simulatedProbe, writeScript } from '../../probe/programs.js';
import { SMALL, standInAnswer, writeSmallModel } from '../../probe/small-model.js';
import type { Switches } from '../../probe/switches.js';
import { codeOf, workspace } from '../../workspace.js';
import { TRACED, tracedRows } from '../mil/traced.js';

const folder = workspace();
const simulated = simulatedProbe();

/** Milliseconds that a misdeed of the simulated probe may take to show; nothing waits as long where all is well. */
const SHORT = 400;
const INPUTS = { a: Float32Array.from({ length: 33 }, (_, i) => i), b: Float32Array.of(0.5, -2) };
const ANSWER = {
  y: Float32Array.from(standInAnswer([INPUTS.a, INPUTS.b], 4)),
  z: Float32Array.from(standInAnswer([INPUTS.a, INPUTS.b], 96)),
};

async function options(switches: Partial<Switches> = {}, more: Partial<ProbeOptions> = {}): Promise<ProbeOptions> {
  return { ...simulated(switches), models: [await writeSmallModel(folder())], ...more };
}

async function opened(switches: Partial<Switches> = {}, more: Partial<ProbeOptions> = {}): Promise<Probe> {
  return openProbe(await options(switches, more));
}

const openCode = async (switches: Partial<Switches>, more: Partial<ProbeOptions> = {}) =>
  codeOf(async () => (await opened(switches, more)).close());

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
    const probe = await opened(switches, { patience: { answer: SHORT } });
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

// S18: it is ready when `openProbe` resolves, not before; a failure leaves nothing running.
describe('opening', () => {
  test.each([
    ['hello', 'kill', 'PROBE_KILLED_AT_START'],
    ['hello', 'exit', 'PROBE_START_FAILED'],
    ['hello', 'hang', 'PROBE_HUNG'],
    ['hello', 'garbage', 'PROBE_PROTOCOL'],
    ['hello', 'oversized', 'PROBE_PROTOCOL'],
    ['hello', 'truncated', 'PROBE_PROTOCOL'],
    ['ready', 'kill', 'PROBE_CRASHED'],
    ['ready', 'exit', 'PROBE_CRASHED'],
    ['ready', 'hang', 'PROBE_HUNG'],
    ['ready', 'garbage', 'PROBE_PROTOCOL'],
    ['ready', 'truncated', 'PROBE_PROTOCOL'],
    ['ready', 'wrong-id', 'PROBE_PROTOCOL'],
  ] as const)('a probe that fails at %s by %s: %s', async (at, does, code) => {
    const patience = does === 'hang' ? { [at === 'hello' ? 'hello' : 'load']: SHORT } : {};
    expect(await openCode({ faults: [{ at, does }] }, { patience })).toBe(code);
  });

  test.each([
    [{ protocol: 2 }, 'PROBE_VERSION'],
    [{ protocol: 'one' }, 'PROBE_PROTOCOL'],
    [{ core_ml: 'pear' }, 'PROBE_NOT_APPLE'],
    [{ core_ml: 'apple' }, 'PROBE_NOT_APPLE'],
    [{ limits: { frame: 0, queue: 8 } }, 'PROBE_PROTOCOL'],
    [{ limits: { frame: 1 << 20, queue: 0 } }, 'PROBE_PROTOCOL'],
    [{ limits: { frame: 256, queue: 8 } }, 'PROBE_PROTOCOL'],
    [{ limits: null }, 'PROBE_PROTOCOL'],
  ])('a probe that tells %j: %s', async (tells, code) => {
    expect(await openCode({ tells })).toBe(code);
  });

  // B08: a probe on other units than asked for is no probe for these requests.
  test('a probe on other compute units is refused', async () => {
    expect(await openCode({ tells: { units: 'cpuOnly' } })).toBe('PROBE_NOT_APPLE');
    const probe = await opened({}, { units: 'cpuOnly' });
    expect(probe.hello.units).toBe('cpuOnly');
    await probe.close();
  });

  test("only Apple's framework is accepted unless a test says otherwise", async () => {
    const { accept: _, ...rest } = simulated();
    const models = [await writeSmallModel(folder())];
    expect(await codeOf(() => openProbe({ ...rest, models }))).toBe('PROBE_NOT_APPLE');
  });

  test("a model that is refused or missing is the model's fault", async () => {
    expect(await openCode({ refuses: 'small' })).toBe('MODEL_REFUSED');
    expect(await openCode({}, { models: [join(folder(), 'nowhere')] })).toBe('MODEL_MISSING');
  });

  test('can be stopped while it loads', async () => {
    const never = join(folder(), 'never');
    const stop = new AbortController();
    const opening = openProbe(await options({ gates: [{ at: 'ready', file: never }] }, { signal: stop.signal }));
    stop.abort(new Error('stopped'));
    await expect(opening).rejects.toThrow('stopped');
    await expect(openProbe(await options({}, { signal: stop.signal }))).rejects.toThrow('stopped');
  });

  test('waits for a probe that starts slowly', async () => {
    const [hello, ready] = [join(folder(), 'hello'), join(folder(), 'ready')];
    const gates = [
      { at: 'hello', file: hello },
      { at: 'ready', file: ready },
    ] as const;
    const opening = openProbe(await options({ gates }));
    writeFileSync(hello, '');
    writeFileSync(ready, '');
    await (await opening).close();
  });

  // F28: nothing of this is said about a model.
  test('an executable that dies without a word is told from one that leaves', async () => {
    const script = (text: string) => ({ executable: writeScript(join(folder(), 'laya-probe'), text) });
    const killed = openProbe(await options({}, script('kill -9 $$')));
    await expect(killed).rejects.toMatchObject({
      code: 'PROBE_KILLED_AT_START',
      hint: expect.stringMatching(/com\.apple\.quarantine.*codesign/),
    });
    const left = openProbe(await options({}, script('echo "dyld: no such library" >&2; exit 6')));
    await expect(left).rejects.toMatchObject({ code: 'PROBE_START_FAILED', found: 'dyld: no such library' });
    const silent = openProbe(await options({}, script('exit 0')));
    await expect(silent).rejects.toMatchObject({ code: 'PROBE_START_FAILED' });
    expect(await openCode({}, { executable: join(folder(), 'nothing') })).toBe('PROBE_MISSING');
    expect(await openCode({}, script('echo "laya-probe 9"'))).toBe('PROBE_PROTOCOL');
  });
});
