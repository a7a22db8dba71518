// The apple toolchain over the simulated probe: no test here says anything about Core ML or a Neural Engine.
import { copyFileSync, writeFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { Event } from '../../../pipeline/events.js';
import { buildArtifacts } from '../../../pipeline/line.js';
import type { Toolchain } from '../../../pipeline/toolchain/toolchain.js';
import type { UsableProbe } from '../../../pipeline/tools/probe.js';
import { artifactFolder, COMPILED, MANIFEST } from '../../../registry/paths.js';
import { readArtifact, verifyTree } from '../../../registry/read.js';
import type { Switches } from '../../probe/switches.js';
import { codeOf, treeOf, workspace } from '../../workspace.js';
import { simulatedMac } from '../apple.js';
import { testContext, testOrder } from '../context.js';

const folder = workspace();
const mac = simulatedMac();
const KEY = { model: testOrder().model, bucket: 64 };
const order = (toolchain: Toolchain, force = false) => testOrder({ toolchain, force });
const entries = (path: string): Promise<string[]> => readdir(path).catch(() => []);
const stagingOf = (root: string): Promise<string[]> => entries(join(root, 'artifacts/.staging'));
const registeredIn = async (root: string): Promise<string[]> =>
  (await treeOf(join(root, 'artifacts')).catch(() => [])).filter((path) => /^laya-tiny\/.*bc1s-masked/.test(path));

async function recordOf(root: string): Promise<Record<string, unknown>> {
  const names = await entries(join(root, 'artifacts/rejected'));
  expect(names).toHaveLength(1);
  return JSON.parse(await readFile(join(root, 'artifacts/rejected', names[0]!), 'utf8'));
}

describe('a build with the apple toolchain', () => {
  it('registers an artifact with evidence of the Neural Engine, and leaves nothing else', async () => {
    const root = folder();
    const report = await buildArtifacts(order(mac()), testContext(root));
    expect(report.rows[0]).toMatchObject({ bucket: 64, outcome: 'registered', path: artifactFolder(root, KEY) });
    expect(report.rows[0]?.placement).toMatch(/^CPU_AND_NE ane=\d+ cpu=0 gpu=0$/);
    const artifact = await readArtifact(KEY, artifactFolder(root, KEY));
    const { manifest } = artifact;
    expect((await verifyTree(artifact)).v1).toBe(report.rows[0]?.artifact_sha256);
    expect(await readdir(artifact.folder)).toEqual([MANIFEST, COMPILED]);
    expect([await stagingOf(root), await entries(join(root, 'artifacts/rejected'))]).toEqual([[], []]);
    expect(manifest).toMatchObject({
      compiler: { kind: 'apple', name: 'simulated', version: 'macOS 15.5 (24F74)' },
      placement: { compute_units: 'CPU_AND_NE', transitions: 0, off_ane: {}, cost_share: { ane: 1 } },
      platform: { soc: 'Apple Simulated', macos: '15.5', macos_build: '24F74', coremltools: '9.0' },
      parity: { passed: true, precision: 'float16', tolerance: 0.02, hard_mismatches: 0, repeat_identical: true },
      evidence: {
        kind: 'apple',
        profile: 'apple-simulated-macos15-coremltools9.0',
        executor: { name: 'simulated' },
        load_probe: { ane_ms: 0.001, cpu_ms: 0.004, ratio: 0.25, max_ratio: 0.8, runs: 5 },
        measured_at: '2026-01-02T03:04:05.000Z',
      },
    });
    expect(manifest.placement.ops?.ane).toBeGreaterThan(100);
    expect(manifest.placement.constants).toBeGreaterThan(50);
    expect(manifest.placement.operations).toHaveProperty(['ios18.conv']);
    expect(manifest.parity.rows).toBeGreaterThan(100);
    expect(JSON.stringify(manifest)).not.toContain('PORTABLE');
  });

  it('is skipped the second time, and replaces on demand', async () => {
    const root = folder();
    await buildArtifacts(order(mac()), testContext(root));
    const idle = testContext(root);
    expect((await buildArtifacts(order(mac()), idle)).rows[0]?.outcome).toBe('already-registered');
    expect(idle.events).toEqual([]);
    const forced = await buildArtifacts(order(mac(), true), testContext(root));
    expect(forced.rows[0]?.outcome).toBe('registered');
    expect(await readdir(join(artifactFolder(root, KEY), '..'))).toEqual(['bc1s-masked-L64-B1']);
  });

  // B03: the model that counts is the one at the path that readers load.
  it('runs its gates at the registered path, where no reader sees an artifact until they have passed', async () => {
    const root = folder();
    const context = testContext(root);
    const seen: string[][] = [];
    const emit = async (event: Event): Promise<void> => {
      if (event.kind === 'stage_started' && ['place', 'parity'].includes(event.stage))
        seen.push(await readdir(artifactFolder(root, KEY)));
    };
    const toolchain = mac({ refuses: '.staging' });
    const report = await buildArtifacts(order(toolchain), { ...context, emit: (event) => void emit(event) });
    expect(report.rows[0]?.outcome).toBe('registered');
    expect(seen).toEqual([1, 2].map(() => ['PENDING.json', 'manifest.pending.json', COMPILED]));
  });

  it('refuses a model that is only refused at the registered path', async () => {
    const root = folder();
    const report = await buildArtifacts(order(mac({ refuses: '/bc1s-masked-L64' })), testContext(root));
    expect(report.rows[0]).toMatchObject({ outcome: 'rejected', code: 'MODEL_REFUSED' });
    expect(await registeredIn(root)).toEqual([]);
  });

  it('takes the bound of the load-time probe from its settings, and records it', async () => {
    const root = folder();
    const switches = { micros: { cpuAndNeuralEngine: 9, cpuOnly: 10 } };
    expect((await buildArtifacts(order(mac(switches)), testContext(root))).rows[0]?.code).toBe('LOAD_PROBE_SLOW');
    const loose = await buildArtifacts(order(mac(switches, { maxRatio: 0.95 })), testContext(root));
    expect(loose.rows[0]?.outcome).toBe('registered');
    const { manifest } = await readArtifact(KEY, artifactFolder(root, KEY));
    expect(manifest.evidence?.load_probe).toMatchObject({ ratio: 0.9, max_ratio: 0.95 });
  });
});

describe('a gate of the apple toolchain that refuses', () => {
  const soon = { command: 4000, answer: 2000 };
  const refusals: [string, Partial<Switches>, string, string, object][] = [
    [
      'operations on the CPU',
      { onCpu: ['conv', 'gelu'] },
      'PLACEMENT_REFUSED',
      'place',
      { placement: { off_ane: { 'ios18.conv': 26, 'ios18.gelu': 5 } } },
    ],
    ['operations on the GPU', { onGpu: ['gelu'] }, 'PLACEMENT_REFUSED', 'place', { placement: { ops: { gpu: 5 } } }],
    ['answers that are no numbers', { answers: 'nan' }, 'PARITY_FAILED', 'parity', { parity: { all_finite: false } }],
    [
      'a model as slow as on the CPU',
      { micros: { cpuAndNeuralEngine: 4, cpuOnly: 4 } },
      'LOAD_PROBE_SLOW',
      'place',
      { placement: { load_probe: { ratio: 1 } } },
    ],
    ['no time to measure', { micros: { cpuOnly: 0 } }, 'LOAD_PROBE_SLOW', 'place', {}],
    ['a crash while it compiles', { faults: [{ at: 'compile', does: 'kill' }] }, 'PROBE_CRASHED', 'compile', {}],
    ['a crash while it plans', { faults: [{ at: 'plan', does: 'kill' }] }, 'PROBE_CRASHED', 'place', {}],
    ['a crash while it answers', { faults: [{ at: 20, does: 'kill' }] }, 'PROBE_CRASHED', 'parity', {}],
    ['an end while it answers', { faults: [{ at: 20, does: 'exit' }] }, 'PROBE_CRASHED', 'parity', {}],
    ['a plan that does not end', { faults: [{ at: 'plan', does: 'hang' }] }, 'PROBE_HUNG', 'place', {}],
    ['an answer that does not come', { faults: [{ at: 20, does: 'hang' }] }, 'PROBE_HUNG', 'parity', {}],
    ['a kill at the start', { faults: [{ at: 'hello', does: 'kill' }] }, 'PROBE_KILLED_AT_START', 'place', {}],
    ['bytes that are no protocol', { faults: [{ at: 20, does: 'garbage' }] }, 'PROBE_PROTOCOL', 'parity', {}],
  ];

  // R02, F28
  it.each(refusals)('leaves a record and registers nothing: %s', async (_name, switches, code, stage, figures) => {
    const root = folder();
    const report = await buildArtifacts(order(mac(switches, { patience: soon })), testContext(root));
    expect(report.rows[0]).toMatchObject({ outcome: 'rejected', code });
    const record = await recordOf(root);
    expect(record).toMatchObject({ status: 'rejected', code, stage, source: { model: 'laya-tiny' }, ...figures });
    expect([await registeredIn(root), await stagingOf(root)]).toEqual([[], []]);
  });

  it('names the operators that are elsewhere', async () => {
    const root = folder();
    const report = await buildArtifacts(order(mac({ onCpu: ['conv'], onGpu: ['gelu'] })), testContext(root));
    expect(report.rows[0]?.reason).toContain('26 ios18.conv, 5 ios18.gelu');
  });

  it('leaves the previous artifact where it was, also when it was to be replaced', async () => {
    const root = folder();
    await buildArtifacts(order(mac()), testContext(root));
    const before = await readFile(join(artifactFolder(root, KEY), MANIFEST), 'utf8');
    const report = await buildArtifacts(order(mac({ answers: 'nan' }), true), testContext(root));
    expect(report.rows[0]?.code).toBe('PARITY_FAILED');
    expect(await readFile(join(artifactFolder(root, KEY), MANIFEST), 'utf8')).toBe(before);
    expect(await readdir(join(artifactFolder(root, KEY), '..'))).toEqual(['bc1s-masked-L64-B1']);
  });

  it('tells a laya-probe for another processor from a model that fails', async () => {
    const [root, own] = [folder(), join(folder(), 'laya-probe')];
    const change = (probe: UsableProbe): UsableProbe => {
      copyFileSync(probe.executable, own);
      return { ...probe, executable: own };
    };
    const emit = (event: Event): void => {
      if (event.kind !== 'stage_started' || event.stage !== 'place') return;
      writeFileSync(own, Buffer.from('cffaedfe07000001030000000000000000000000', 'hex'));
    };
    const report = await buildArtifacts(order(mac({}, { change })), { ...testContext(root), emit });
    expect(report.rows[0]).toMatchObject({ outcome: 'rejected', code: 'PROBE_WRONG_FORMAT' });
    expect((await recordOf(root)).rejected_because).toContain('no program for this machine');
    expect(await registeredIn(root)).toEqual([]);
  });
});

describe('an apple toolchain that can not be made ready', () => {
  const cases: [string, Parameters<typeof mac>, string][] = [
    ['killed at its start', [{ faults: [{ at: 'version', does: 'kill' }] }], 'PROBE_KILLED_AT_START'],
    ['without a Neural Engine', [{ device: { compute_devices: [{ kind: 'cpu' }] } }], 'TOOLCHAIN_UNAVAILABLE'],
    ['translated', [{ device: { architecture: 'x86_64' } }], 'TOOLCHAIN_UNAVAILABLE'],
    ['on an unnamed processor', [{ device: { soc: null } }], 'TOOLCHAIN_UNAVAILABLE'],
    ['missing', [{}, { change: (probe) => ({ ...probe, executable: '/nowhere/laya-probe' }) }], 'PROBE_MISSING'],
    ['of another release', [{ tells: { protocol: 2 } }], 'PROBE_VERSION'],
    // What commands use accepts Apple's Core ML alone: nothing simulated gives evidence there.
    [
      'simulated, where Core ML is wanted',
      [{}, { change: (probe) => ({ ...probe, accept: ['apple'] }) }],
      'PROBE_NOT_APPLE',
    ],
  ];

  it.each(cases)('registers nothing and blames no artifact: %s', async (_name, args, code) => {
    const root = folder();
    expect(await codeOf(() => buildArtifacts(order(mac(...args)), testContext(root)))).toBe(code);
    expect([await registeredIn(root), await entries(join(root, 'artifacts/rejected'))]).toEqual([[], []]);
  });
});
