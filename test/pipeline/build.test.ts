import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { Context } from '../../pipeline/events.js';
import { buildArtifacts } from '../../pipeline/line.js';
import type { BuildOrder } from '../../pipeline/order.js';
import { portableToolchain } from '../../pipeline/toolchain/portable.js';
import { artifactFolder, COMPILED, MANIFEST } from '../../registry/paths.js';
import type { Manifest } from '../../schemas/generated/types.js';
import { codeOf, treeOf, workspace } from '../workspace.js';
import { testContext, testOrder } from './context.js';

const folder = workspace();
const KEY = { model: testOrder().model, bucket: 64 };
const manifestOf = async (root: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(artifactFolder(root, KEY), MANIFEST), 'utf8'));
const entries = (path: string): Promise<string[]> => readdir(path).catch(() => []);
const stagingOf = (root: string): Promise<string[]> => entries(join(root, 'artifacts/.staging'));
const rejectedOf = (root: string): Promise<string[]> => entries(join(root, 'artifacts/rejected'));

describe('buildArtifacts', () => {
  it('registers an artifact with its evidence, and leaves nothing else', async () => {
    const root = folder();
    const report = await buildArtifacts(testOrder({ buckets: [64, 96] }), testContext(root));
    expect(report.rows.map(({ bucket, outcome }) => [bucket, outcome])).toEqual([
      [64, 'registered'],
      [96, 'registered'],
    ]);
    const files = [
      'analytics/',
      'analytics/coremldata.bin',
      'coremldata.bin',
      'metadata.json',
      'model.mil',
      'weights/',
    ];
    const weights = ['weights/rope.bin', 'weights/weight.bin'];
    const declared = [MANIFEST, `${COMPILED}/`, ...[...files, ...weights].map((path) => `${COMPILED}/${path}`)];
    expect(await treeOf(artifactFolder(root, KEY))).toEqual(declared.sort());
    expect([await stagingOf(root), await rejectedOf(root)]).toEqual([[], []]);

    const manifest = await manifestOf(root);
    expect(manifest).toMatchObject({
      status: 'validated',
      compiler: { kind: 'portable', name: 'mlmodelc-export', version: '0.1.0' },
      placement: { compute_units: 'PORTABLE_CPU', transitions: 0 },
      platform: { soc: 'portable', coremltools: '9.0' },
      evidence: { kind: 'portable', profile: 'portable', artifact_sha256: manifest.integrity.artifact_sha256 },
      parity: { passed: true, tolerance: 0.02, hard_mismatches: 0, token_mismatch_cases: 0, repeat_identical: true },
      conversion: { packages: { coremltools: '9.0' } },
    });
    expect(Object.keys(manifest.placement.ops ?? {})).toEqual(['cpu']);
    expect(manifest.parity.rows).toBeGreaterThan(100);
    expect(manifest.conversion?.layout_check_max_abs_logit_fp32).toBeLessThan(1e-3);
  });

  it('does no work the second time, and rebuilds on demand', async () => {
    const root = folder();
    const first = await buildArtifacts(testOrder(), testContext(root));
    const idle = testContext(root);
    const second = await buildArtifacts(testOrder(), idle);
    expect(second.rows[0]).toMatchObject({ outcome: 'already-registered', path: first.rows[0]!.path });
    expect(idle.events).toEqual([]);
    const forced = await buildArtifacts(testOrder({ force: true }), testContext(root));
    expect(forced.rows[0]).toMatchObject({ outcome: 'registered', artifact_sha256: first.rows[0]!.artifact_sha256 });
  });

  // B13: the same checkpoint and code give the same bytes, in any folder, on any day, for any user.
  it('makes the same artifact in another folder, on another day, for another user', async () => {
    const [one, other] = [folder(), join(folder(), 'with space and \u00e9')];
    const env = { ...process.env, USER: 'someone', LANG: 'de_DE.UTF-8', TZ: 'Asia/Tokyo', PYTHONHASHSEED: '7' };
    const later = { env, now: () => new Date('2031-12-31T23:59:59Z') };
    const reports = [
      await buildArtifacts(testOrder(), testContext(one)),
      await buildArtifacts(testOrder(), testContext(other, later)),
    ];
    const [first, second] = reports.map((report) => report.rows[0]?.artifact_sha256);
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    expect(second).toBe(first);
  });

  it('writes no path, user or host name of this machine into the model', async () => {
    const root = folder();
    await buildArtifacts(testOrder(), testContext(root));
    const model = join(artifactFolder(root, KEY), COMPILED);
    for (const path of await treeOf(model)) {
      if (path.endsWith('/')) continue;
      const content = await readFile(join(model, path), 'latin1');
      for (const secret of [root, process.cwd(), process.env.HOME ?? root])
        expect(content.includes(secret)).toBe(false);
    }
  });

  // R11: one builds, the other waits and finds it.
  it('lets one of two builders of a target do the work', async () => {
    const root = folder();
    const contexts = [testContext(root), testContext(root)] as const;
    const reports = await Promise.all(contexts.map((context) => buildArtifacts(testOrder(), context)));
    expect(reports.map(({ rows }) => rows[0]?.outcome).sort()).toEqual(['already-registered', 'registered']);
    expect(contexts.flatMap(({ events }) => events).filter(({ kind }) => kind === 'waiting')).toHaveLength(1);
  });
});

describe('a gate that refuses', () => {
  const real = portableToolchain();
  const altered = (change: (values: Float32Array) => Float32Array): BuildOrder =>
    testOrder(
      {},
      {
        open: async (model) => {
          const executable = await real.open(model);
          const run = async (inputs: Record<string, Float32Array>) => {
            const outputs = await executable.run(inputs);
            return { ...outputs, logits: change(outputs.logits!) };
          };
          return { run, release: () => executable.release() };
        },
      },
    );
  const placed = (ops: Record<string, number>, transitions: number): BuildOrder =>
    testOrder({}, { placement: async () => ({ compute_units: 'PORTABLE_CPU', ops, transitions, operations: {} }) });
  let calls = 0;

  const refusals: [string, string, string, () => BuildOrder][] = [
    ['wrong answers', 'PARITY_FAILED', 'parity', () => altered((values) => values.map((value) => -value))],
    ['NaN', 'PARITY_FAILED', 'parity', () => altered((values) => values.map(() => Number.NaN))],
    [
      'other numbers each time',
      'PARITY_FAILED',
      'parity',
      () => altered((values) => values.map((v) => v + ++calls * 1e-6)),
    ],
    ['operations elsewhere', 'PLACEMENT_REFUSED', 'place', () => placed({ cpu: 10, gpu: 1 }, 0)],
    ['transitions', 'PLACEMENT_REFUSED', 'place', () => placed({ cpu: 10 }, 2)],
    ['no operations', 'PLACEMENT_REFUSED', 'place', () => placed({}, 0)],
  ];

  // R02, B02: with force too, the previous artifact stays.
  it.each(refusals)('leaves a record and the previous artifact: %s', async (_name, code, stage, order) => {
    const root = folder();
    await buildArtifacts(testOrder(), testContext(root));
    const before = await readFile(join(artifactFolder(root, KEY), MANIFEST), 'utf8');
    const report = await buildArtifacts({ ...order(), force: true }, testContext(root));
    expect(report.rows[0]).toMatchObject({ outcome: 'rejected', code });
    expect(await readFile(join(artifactFolder(root, KEY), MANIFEST), 'utf8')).toBe(before);
    expect(await stagingOf(root)).toEqual([]);
    const [record] = await rejectedOf(root);
    const written = JSON.parse(await readFile(join(root, 'artifacts/rejected', record!), 'utf8'));
    expect(written).toMatchObject({ status: 'rejected', code, stage, source: { model: 'laya-tiny' } });
  });

  it('builds the other buckets', async () => {
    const root = folder();
    const placement = async (model: string, inputs: Record<string, Float32Array>, temp: string) =>
      model.includes('L96')
        ? ({ compute_units: 'PORTABLE_CPU', ops: {}, transitions: 0, operations: {} } as const)
        : real.placement(model, inputs, temp);
    const report = await buildArtifacts(testOrder({ buckets: [64, 96, 128] }, { placement }), testContext(root));
    expect(report.rows.map(({ outcome }) => outcome)).toEqual(['registered', 'rejected', 'registered']);
  });
});

describe('a step that fails', () => {
  const compiles = (write: (target: string) => Promise<unknown>): BuildOrder =>
    testOrder(
      {},
      {
        compile: async (_source, target) => {
          await write(target);
          return { name: 'stub', version: '1', kind: 'portable', executable_sha256: 'a'.repeat(64) };
        },
      },
    );

  // B11: success is the output, not the exit status.
  const compilers: [string, (target: string) => Promise<unknown>][] = [
    ['writes nothing', async () => undefined],
    ['writes an empty folder', (target) => mkdir(target)],
    ['writes a file in its place', (target) => writeFile(target, '')],
    [
      'forgets a file',
      async (target) => {
        await mkdir(join(target, 'weights'), { recursive: true });
        for (const name of ['metadata.json', 'model.mil', 'weights/weight.bin'])
          await writeFile(join(target, name), 'x');
      },
    ],
  ];

  it.each(compilers)('registers nothing when the compiler %s', async (_name, write) => {
    const root = folder();
    expect(await codeOf(() => buildArtifacts(compiles(write), testContext(root)))).toBe('COMPILE_INCOMPLETE');
    expect([await stagingOf(root), await rejectedOf(root)]).toEqual([[], []]);
    expect(await entries(join(root, 'artifacts/laya-tiny'))).toEqual([]);
  });

  it('refuses a model without references before any work', async () => {
    const root = folder();
    const model = { ...KEY.model, name: 'laya-unknown' };
    const context = testContext(root);
    expect(await codeOf(() => buildArtifacts(testOrder({ model }), context))).toBe('GOLDENS_MISSING');
    expect([context.events, await entries(root)]).toEqual([[], []]);
  });

  it('refuses a root that is a file', async () => {
    const root = join(folder(), 'file');
    await writeFile(root, '');
    expect(await codeOf(() => buildArtifacts(testOrder(), testContext(root)))).toBe('ROOT_UNWRITABLE');
  });

  it.each([
    ['PYTHON_MISSING', { LAYA_PYTHON: '/nowhere/python3' }],
    ['RUST_MISSING', { PATH: '/usr/bin:/bin' }],
  ])('says %s before any work', async (code, env) => {
    const [root, tools] = [folder(), folder()];
    const python =
      code === 'RUST_MISSING'
        ? {
            LAYA_PYTHON: (await import('node:child_process'))
              .execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' })
              .trim(),
          }
        : {};
    const context = testContext(root, { tools, env: { ...process.env, ...python, ...env } as Context['env'] });
    expect(await codeOf(() => buildArtifacts(testOrder(), context))).toBe(code);
    expect([context.events, await entries(root), await entries(tools)]).toEqual([[], [], []]);
  });
});
