import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import {
  type CommandOptions,
  probeCompile,
  probeDevice,
  probePlan,
  probePredict,
  probeVersion,
} from '../../../runtime/probe/commands.js';
import { simulatedProbe, writeScript } from '../../probe/programs.js';
import { writeSmallModel } from '../../probe/small-model.js';
import { codeOf, workspace, writeTree } from '../../workspace.js';
import { TRACED } from '../mil/traced.js';

const folder = workspace();
const simulated = simulatedProbe();

describe('a command', () => {
  test('tells who answers and what the machine is', async () => {
    expect(await probeVersion(simulated())).toEqual({
      name: 'laya-probe',
      version: '0.1.0',
      protocol: 1,
      coreMl: 'simulated',
    });
    const device = await probeDevice(simulated({ device: { soc: null } }));
    expect(device).toMatchObject({ architecture: 'arm64', soc: null, system: { name: 'macOS', build: '24F74' } });
    expect(device.computeDevices).toContainEqual({ kind: 'ane', cores: 16 });
  });

  test('plans: placement, transitions and what is off the Neural Engine, by name', async () => {
    const all = await probePlan(simulated(), TRACED, 'cpuAndNeuralEngine');
    expect(all).toMatchObject({ constants: 397, devices: { ane: 314 }, transitions: 0, offAne: {} });
    const some = await probePlan(simulated({ onCpu: ['conv', 'gelu'] }), TRACED, 'cpuAndNeuralEngine');
    expect(some).toMatchObject({ devices: { ane: 283, cpu: 31 }, offAne: { 'ios18.conv': 26, 'ios18.gelu': 5 } });
    expect(some.cost).toEqual({ ane: 141.5, cpu: 15.5 });
    expect(some.operations).toHaveLength(314);
  });

  test.each([
    { devices: { ane: 315 } },
    { transitions: 1 },
    { counted: 313 },
    { off_ane: { conv: 1 } },
    { units: 'cpuOnly' },
    { operations: 'all' },
    { constants: -1 },
  ])('refuses a plan whose figures contradict each other: %j', async (tells) => {
    expect(await codeOf(() => probePlan(simulated({ tells }), TRACED, 'cpuAndNeuralEngine'))).toBe('PROBE_PROTOCOL');
  });

  test('predicts', async () => {
    const model = await writeSmallModel(folder());
    const report = await probePredict(simulated(), model, 'cpuOnly', 2);
    expect(report.outputs.map(({ name, fp16 }) => [name, fp16.length])).toEqual([
      ['y', 8],
      ['z', 192],
    ]);
    expect(report.seconds.median).toBe(0.001);
  });

  // B11: the probe checks what it made; a failure leaves nothing.
  test('compiles, or leaves nothing', async () => {
    const parent = folder();
    const [good, empty, out] = ['good', 'empty', 'out.mlmodelc'].map((name) => join(parent, name)) as [
      string,
      string,
      string,
    ];
    await writeTree(parent, { 'good/Manifest.json': '{}', 'good/coremldata.bin': 'x', 'empty/Manifest.json': '{}' });
    expect(await codeOf(() => probeCompile(simulated(), empty, out))).toBe('COMPILE_OUTPUT');
    expect(existsSync(out)).toBe(false);
    expect(await probeCompile(simulated(), good, out)).toMatchObject({ model: out, files: 2, bytes: 3 });
    expect(await codeOf(() => probeCompile(simulated(), good, out))).toBe('OUTPUT_EXISTS');
    expect(await codeOf(() => probeCompile(simulated(), parent, join(parent, 'no')))).toBe('PACKAGE_MISSING');
    expect(await codeOf(() => probeCompile(simulated({ tells: { model: '/etc' } }), good, `${out}2`))).toBe(
      'PROBE_PROTOCOL',
    );
  });
});

describe('a command that fails', () => {
  const device = (options: CommandOptions) => codeOf(() => probeDevice(options));

  test.each([
    ['kill', 'PROBE_CRASHED'],
    ['exit', 'PROBE_CRASHED'],
    ['hang', 'PROBE_HUNG'],
    ['garbage', 'PROBE_PROTOCOL'],
  ] as const)('by %s: %s', async (does, code) => {
    expect(await device({ ...simulated({ faults: [{ at: 'command', does }] }), patience: 2000 })).toBe(code);
  });

  // F28: killed at the very start is the executable's fault, later it may be anything.
  test('at its start is told apart', async () => {
    const script = (text: string) => ({ executable: writeScript(join(folder(), 'laya-probe'), text), env: {} });
    expect(await device(script('kill -9 $$'))).toBe('PROBE_KILLED_AT_START');
    expect(await device(script('exit 1'))).toBe('PROBE_START_FAILED');
    expect(await device(script('echo "{}"'))).toBe('PROBE_PROTOCOL');
    expect(await device(script('echo "[1"'))).toBe('PROBE_PROTOCOL');
    expect(await device({ ...simulated(), accept: ['apple'] })).toBe('PROBE_NOT_APPLE');
    expect(await device(simulated({ tells: { protocol: 3 } }))).toBe('PROBE_VERSION');
  });

  test('reports codes of its own, known or not', async () => {
    const text = (code: string) => `{"probe":{},"error":{"code":"${code}","message":"m","hint":"h"}}`;
    const script = (code: string) => ({
      executable: writeScript(join(folder(), 'laya-probe'), `echo '${text(code)}'; exit 1`),
      env: {},
    });
    expect(await device(script('CORE_ML_MISSING'))).toBe('CORE_ML_MISSING');
    await expect(probeDevice(script('NEW_CODE'))).rejects.toMatchObject({
      code: 'PROBE_REPORTED',
      found: 'NEW_CODE',
      hint: 'h',
    });
  });

  test('can be stopped', async () => {
    const stop = new AbortController();
    const options = simulated({ faults: [{ at: 'command', does: 'hang' }] });
    const running = probeDevice({ ...options, signal: stop.signal });
    stop.abort(new Error('stopped'));
    await expect(running).rejects.toThrow('stopped');
  });
});
