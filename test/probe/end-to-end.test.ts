// The client and a whole probe together: the simulated one in `npm test`, laya-probe built with the stand-in for Core ML in
// `npm run test:swift`.
import { existsSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { openProbe } from '../../runtime/probe/client.js';
import { probeCompile, probeDevice, probePlan, probePredict, probeVersion } from '../../runtime/probe/commands.js';
import { codeOf, workspace, writeTree } from '../workspace.js';
import { probeUnderTest } from './programs.js';
import { SMALL, standInAnswer, writeSmallModel } from './small-model.js';

const folder = workspace();
const program = probeUnderTest();
const TRACED = join(import.meta.dirname, '..', 'fixtures', 'mil', 'traced-L64.mlmodelc');

const inputsOf = (seed: number) => ({
  a: Float32Array.from({ length: 33 }, (_, i) => seed + i / 8),
  b: Float32Array.of(-seed, 0.5),
});
const answerOf = ({ a, b }: ReturnType<typeof inputsOf>) => ({
  y: Float32Array.from(standInAnswer([a, b], 4)),
  z: Float32Array.from(standInAnswer([a, b], 96)),
});

describe('the client and a probe', () => {
  test('keep 200 requests apart, some of them cancelled, and end together', async () => {
    const model = await writeSmallModel(folder());
    const probe = await openProbe({ ...program(), models: [model, model], queue: 500 });
    expect(probe.models.map(({ inputs, outputs }) => ({ inputs, outputs }))).toEqual([SMALL, SMALL]);
    const stop = new AbortController();
    const requests = Array.from({ length: 200 }, (_, i) => {
      const inputs = inputsOf(i);
      const signal = i % 10 === 3 ? stop.signal : undefined;
      return probe.models[i % 2]!.run(inputs, signal).then((found) => {
        expect({ ...found }).toEqual(answerOf(inputs));
        return 'answered';
      });
    });
    stop.abort(new Error('not wanted'));
    const outcomes = await Promise.allSettled(requests);
    for (const [i, outcome] of outcomes.entries()) expect(outcome.status).toBe(i % 10 === 3 ? 'rejected' : 'fulfilled');
    await probe.close();
    expect(await probe.ended).toBeNull();
  });

  test('a model of the real size passes as it is', async () => {
    const inputs = [
      { name: 'embeddings', shape: [1, 1024, 1, 128] },
      { name: 'full_mask', shape: [1, 128, 1, 1] },
      { name: 'marker_map', shape: [1, 128, 1, 32] },
      { name: 'type_vectors', shape: [1, 1024, 1, 1] },
    ];
    const outputs = [
      { name: 'cls', shape: [1, 1024, 1, 1] },
      { name: 'logits', shape: [1, 1, 1, 32] },
    ];
    const model = await writeSmallModel(folder(), 'large.mlmodelc', { inputs, outputs });
    const probe = await openProbe({ ...program(), models: [model] });
    const given = inputs.map(({ name, shape }, n) => {
      const count = shape.reduce((a, b) => a * b, 1);
      return [name, Float32Array.from({ length: count }, (_, i) => ((i * 7 + n) % 2048) / 4)] as const;
    });
    const found = await probe.models[0]!.run(Object.fromEntries(given));
    const arrays = given.map(([, data]) => data);
    expect(found.cls).toEqual(Float32Array.from(standInAnswer(arrays, 1024)));
    expect(found.logits).toEqual(Float32Array.from(standInAnswer(arrays, 32)));
    await probe.models[0]!.release();
    expect(await probe.ended).toBeNull();
  });

  test('agree on reports', async () => {
    const options = program();
    expect(await probeVersion(options)).toMatchObject({ name: 'laya-probe', coreMl: options.accept[0] });
    expect((await probeDevice(options)).computeDevices.length).toBeGreaterThan(0);
    const plan = await probePlan(options, TRACED, 'cpuAndNeuralEngine');
    expect(plan).toMatchObject({ constants: 397, devices: { ane: 314 }, transitions: 0, offAne: {} });
    expect(plan.operations[0]).toMatchObject({ name: 'out_1_cast_fp16', operator: 'ios18.layer_norm' });
    const predicted = await probePredict(options, await writeSmallModel(folder()), 'cpuOnly', 3);
    expect(predicted.outputs.map(({ name, shape }) => ({ name, shape }))).toEqual(SMALL.outputs);
    expect([predicted.repeatedEqual, predicted.seconds.median === null]).toEqual([true, false]);
  });

  // B11: what was to be made is there, or nothing is.
  test('compile a package to where it is asked for, once', async () => {
    const parent = folder();
    const files = { 'Manifest.json': '{}', 'coremldata.bin': 'x', 'model.mil': 'y' };
    await writeTree(join(parent, 'a.mlpackage'), { ...files, 'Data/com.apple.CoreML/model.mlmodel': 'z' });
    const [source, target] = [join(parent, 'a.mlpackage'), join(parent, 'a.mlmodelc')];
    const report = await probeCompile(program(), source, target);
    expect(report.model).toBe(target);
    expect(readFileSync(join(target, 'coremldata.bin')).length).toBeGreaterThan(0);
    expect(await codeOf(() => probeCompile(program(), source, target))).toBe('OUTPUT_EXISTS');
    expect(await codeOf(() => probeCompile(program(), parent, join(parent, 'b')))).toBe('PACKAGE_MISSING');
    expect((await readdir(parent)).sort()).toEqual(['a.mlmodelc', 'a.mlpackage']);
  });

  test('tell a model that is missing from a probe that is', async () => {
    const nowhere = join(folder(), 'nowhere');
    expect(await codeOf(() => openProbe({ ...program(), models: [nowhere] }))).toBe('MODEL_MISSING');
    expect(await codeOf(() => probePlan(program(), nowhere, 'all'))).toBe('MODEL_MISSING');
    expect(await codeOf(() => openProbe({ ...program(), executable: nowhere, models: [nowhere] }))).toBe(
      'PROBE_MISSING',
    );
    expect(existsSync(nowhere)).toBe(false);
  });
});
