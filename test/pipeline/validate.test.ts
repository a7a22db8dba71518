// `validate` over the simulated probe: no test here says anything about Core ML or a Neural Engine.
import { readFileSync, statSync } from 'node:fs';
import { cp, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { InterruptedError } from '../../pipeline/errors.js';
import type { Event } from '../../pipeline/events.js';
import { buildArtifacts } from '../../pipeline/line.js';
import { provenanceOf, provenanceText } from '../../pipeline/provenance.js';
import type { Toolchain } from '../../pipeline/toolchain/toolchain.js';
import { validateArtifacts } from '../../pipeline/validate.js';
import { artifactFolder, MANIFEST } from '../../registry/paths.js';
import { readArtifact, verifyTree } from '../../registry/read.js';
import { Laya } from '../../runtime/laya.js';
import type { Manifest } from '../../schemas/generated/types.js';
import type { Switches } from '../probe/switches.js';
import { registerLayaTiny } from '../registered.js';
import { codeOf, keptFolder, treeOf, workspace } from '../workspace.js';
import { simulatedMac } from './apple.js';
import { cli } from './cli.js';
import { testContext, testOrder } from './context.js';

const folder = workspace();
const mac = simulatedMac();
const KEY = { model: testOrder().model, bucket: 64 };
const shop = keptFolder();

beforeAll(() => registerLayaTiny(shop(), [64]));

/** A root with a portable artifact. */
async function registered(): Promise<string> {
  const root = folder();
  await cp(join(shop(), 'artifacts'), join(root, 'artifacts'), { recursive: true });
  return root;
}

async function ready(...args: Parameters<typeof mac>): Promise<Toolchain> {
  const toolchain = mac(...args);
  await toolchain.ready(testContext(folder()));
  return toolchain;
}

const order = async (switches: Partial<Switches> = {}) => testOrder({ toolchain: await ready(switches) });
const manifestOf = async (root: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(artifactFolder(root, KEY), MANIFEST), 'utf8'));
const stagingOf = async (root: string) => readdir(join(root, 'artifacts/.staging'));
const siblings = (root: string) => readdir(dirname(artifactFolder(root, KEY)));

/** Path, bytes, inode and time of every file of the registered artifact. */
async function snapshot(root: string): Promise<unknown[]> {
  const at = artifactFolder(root, KEY);
  return (await treeOf(at)).map((path) => {
    const { ino, mtimeNs } = statSync(join(at, path), { bigint: true });
    return [path, `${ino} ${mtimeNs}`, path.endsWith('/') ? '' : readFileSync(join(at, path)).toString('base64')];
  });
}

describe('validateArtifacts', () => {
  it('gives a portable artifact the evidence of this machine, and keeps what it had', async () => {
    const root = await registered();
    const before = await manifestOf(root);
    const report = await validateArtifacts(await order(), testContext(root));
    expect(report).toMatchObject({
      model: 'laya-tiny',
      rows: [
        {
          bucket: 64,
          outcome: 'validated',
          path: artifactFolder(root, KEY),
          artifact_sha256: before.integrity.artifact_sha256,
          placement: { compute_units: 'CPU_AND_NE' },
          load_probe: { ratio: 0.25, max_ratio: 0.8 },
          rows: before.parity.rows,
        },
      ],
    });
    const artifact = await readArtifact(KEY, artifactFolder(root, KEY));
    await verifyTree(artifact);
    const { placement, platform, parity, evidence, other_evidence: others, ...rest } = artifact.manifest;
    const { placement: p, platform: m, parity: r, evidence: e, ...same } = before;
    expect(rest).toEqual(same);
    expect(rest.compiler?.kind).toBe('portable');
    expect(evidence).toMatchObject({ kind: 'apple', executor: { name: 'simulated' }, measured_at: expect.any(String) });
    expect([placement.compute_units, platform.soc, parity.passed]).toEqual(['CPU_AND_NE', 'Apple Simulated', true]);
    expect(others).toEqual([{ evidence: e, placement: p, platform: m, parity: r }]);
    expect([await siblings(root), await stagingOf(root)]).toEqual([['bc1s-masked-L64-B1'], []]);
  });

  it('leaves the portable evidence in use: the cpu answers as before', async () => {
    const root = await registered();
    const ask = async () => {
      const laya = await Laya.open('laya-tiny', { root, device: 'cpu' });
      try {
        return (await laya.predict({ context: 'I paid twice.', questions: ['Is it about money?'] })).answers;
      } finally {
        await laya.close();
      }
    };
    const before = await ask();
    await validateArtifacts(await order(), testContext(root));
    expect(await ask()).toEqual(before);
  });

  it('is what a build on this machine points to, and provenance tells both', async () => {
    const root = await registered();
    const context = testContext(root);
    const toolchain = mac();
    expect((await buildArtifacts(testOrder({ toolchain }), context)).rows[0]?.outcome).toBe('already-registered');
    expect(context.events).toMatchObject([
      { kind: 'skipped', bucket: 64, reason: expect.stringContaining('validate') },
    ]);
    await validateArtifacts(await order(), context);
    const artifact = await readArtifact(KEY, artifactFolder(root, KEY));
    const text = provenanceText(provenanceOf(artifact));
    expect(text).toMatch(/evidence {3}apple, by simulated macOS 15\.5/);
    expect(text).toMatch(/also {7}portable, by onnxruntime/);
    const idle = testContext(root);
    await buildArtifacts(testOrder({ toolchain }), idle);
    expect(idle.events).toEqual([]);
  });

  it('has nothing to do the second time, and adds no second record of the same profile', async () => {
    const root = await registered();
    await validateArtifacts(await order(), testContext(root));
    const before = await snapshot(root);
    const again = await validateArtifacts(await order(), testContext(root));
    expect(again.rows[0]?.outcome).toBe('already-validated');
    expect(await snapshot(root)).toEqual(before);
    const other = { device: { system: { name: 'macOS', version: '16.0', build: '25A1' } } };
    expect((await validateArtifacts(await order(other), testContext(root))).rows[0]?.outcome).toBe('validated');
    const manifest = await manifestOf(root);
    expect(manifest.platform.macos).toBe('16.0');
    expect(manifest.other_evidence?.map(({ platform }) => platform.macos)).toEqual(['15.5', 'none']);
  });

  const refusals: [string, Partial<Switches>, string, string][] = [
    ['operations on the CPU', { onCpu: ['gelu'] }, 'PLACEMENT_REFUSED', 'place'],
    ['answers that are no numbers', { answers: 'nan' }, 'PARITY_FAILED', 'parity'],
    ['no faster than the CPU', { micros: { cpuAndNeuralEngine: 5, cpuOnly: 5 } }, 'LOAD_PROBE_SLOW', 'place'],
    ['a crash', { faults: [{ at: 20, does: 'kill' }] }, 'PROBE_CRASHED', 'parity'],
    ['a model that is refused', { refuses: 'bc1s-masked' }, 'MODEL_REFUSED', 'place'],
  ];

  // R02
  it.each(refusals)('leaves the artifact byte for byte, and a record: %s', async (_name, switches, code, stage) => {
    const root = await registered();
    const before = await snapshot(root);
    const report = await validateArtifacts(await order(switches), testContext(root));
    expect(report.rows[0]).toMatchObject({ outcome: 'rejected', code });
    expect(await snapshot(root)).toEqual(before);
    expect([await siblings(root), await stagingOf(root)]).toEqual([['bc1s-masked-L64-B1'], []]);
    const record = JSON.parse(await readFile(report.rows[0]!.path, 'utf8'));
    expect(record).toMatchObject({ status: 'rejected', code, stage, source: { model: 'laya-tiny' } });
    if (code === 'PLACEMENT_REFUSED') expect(record.placement.off_ane).toEqual({ 'ios18.gelu': 5 });
  });

  it('refuses an artifact that is not whole before any gate', async () => {
    const root = await registered();
    const path = join(artifactFolder(root, KEY), 'model.mlmodelc', 'model.mil');
    await cp(join(artifactFolder(root, KEY), MANIFEST), path);
    expect(await codeOf(async () => validateArtifacts(await order(), testContext(root)))).toBe('TREE_MISMATCH');
    expect(await codeOf(async () => validateArtifacts(await order(), testContext(folder())))).toBe('ARTIFACT_MISSING');
  });

  // Every step, failing and killed: test/registry/faults.test.ts, 'give evidence'.
  it.each(['rename', 'link', 'write'] as const)(
    'leaves the artifact as it was when the first %s fails',
    async (name) => {
      const root = await registered();
      const before = await snapshot(root);
      const steps = { [name]: () => Promise.reject(Object.assign(new Error('disk'), { code: 'ENOSPC' })) };
      expect(await codeOf(async () => validateArtifacts(await order(), testContext(root), steps))).toBe('DISK_FULL');
      expect(await snapshot(root)).toEqual(before);
      expect([await siblings(root), await stagingOf(root)]).toEqual([['bc1s-masked-L64-B1'], []]);
    },
  );

  it.each(['place', 'parity', 'publish'])('changes nothing when it is stopped in %s', async (stage) => {
    const root = await registered();
    const before = await snapshot(root);
    const controller = new AbortController();
    const emit = (event: Event): void => {
      if (event.kind === 'stage_started' && event.stage === stage && stage !== 'publish')
        controller.abort(new InterruptedError('SIGINT'));
      if (event.kind === 'stage_ended' && event.stage === 'parity' && stage === 'publish')
        controller.abort(new InterruptedError('SIGINT'));
    };
    const context = { ...testContext(root), signal: controller.signal, emit };
    expect(await codeOf(async () => validateArtifacts(await order(), context))).toBe('INTERRUPTED');
    expect(await snapshot(root)).toEqual(before);
    expect((await validateArtifacts(await order(), testContext(root))).rows[0]?.outcome).toBe('validated');
    expect(await stagingOf(root)).toEqual([]);
  });
});

describe('the command line', () => {
  it('has Apple evidence on a Mac alone', async () => {
    const run = await cli(['validate', 'laya-tiny', '--length', '64', '--json'], { LAYA_APPLE_CACHE: folder() });
    if (process.platform !== 'darwin') expect(JSON.parse(run.stderr).code).toBe('TOOLCHAIN_UNAVAILABLE');
    expect([run.code, run.stdout]).toEqual([1, '']);
  });

  it.each([
    [['validate']],
    [['validate', 'laya-tiny', '--length', '65']],
    [['validate', 'laya-tiny', '--max-ratio', 'x']],
  ])('%j can not be meant', async (args) => {
    expect((await cli(args, { LAYA_APPLE_CACHE: folder() })).code).toBe(2);
  });
});
