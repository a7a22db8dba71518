import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { InterruptedError } from '../../pipeline/errors.js';
import type { Event } from '../../pipeline/events.js';
import { importArchive } from '../../pipeline/import.js';
import type { ImportOrder } from '../../pipeline/stages/unpack.js';
import { portableToolchain } from '../../pipeline/toolchain/portable.js';
import { writeArchive } from '../../registry/archive/write.js';
import { locateArtifact } from '../../registry/locate.js';
import { findModel } from '../../registry/models.js';
import { artifactFolder, MANIFEST } from '../../registry/paths.js';
import { readArtifact, verifyTree } from '../../registry/read.js';
import { sha256File } from '../../registry/sha256.js';
import { registerLayaTiny } from '../registered.js';
import { codeOf, keptFolder, treeOf, workspace } from '../workspace.js';
import { testContext } from './context.js';

const folder = workspace();
const key = { model: findModel('laya-tiny'), bucket: 64 };
const toolchain = portableToolchain();
const shop = keptFolder();
let archive: string;

beforeAll(async () => {
  await registerLayaTiny(shop(), [64]);
  archive = join(shop(), 'laya-tiny-L64.tar.gz');
  await writeArchive(key, artifactFolder(shop(), key), archive, { threads: 0, signal: new AbortController().signal });
});

const order = (change: Partial<ImportOrder> = {}): ImportOrder => ({
  file: archive,
  force: false,
  toolchain,
  ...change,
});
const manifestOf = async (root: string) =>
  JSON.parse(await readFile(join(artifactFolder(root, key), MANIFEST), 'utf8'));
const stagingOf = async (root: string) => (await treeOf(root)).filter((path) => path.startsWith('artifacts/.staging/'));
/** An executor whose answers are no model's. */
const wrong = {
  ...toolchain,
  open: async (model: string) => {
    const executable = await toolchain.open(model);
    const run: typeof executable.run = async (inputs) => {
      const outputs = await executable.run(inputs);
      return { ...outputs, logits: outputs.logits!.map((value, i) => value + i) };
    };
    return { ...executable, run, release: () => executable.release() };
  },
};

describe('importArchive', () => {
  it('registers what the gates of this machine passed, and records what they measured', async () => {
    const root = folder();
    const report = await importArchive(order(), testContext(root));
    expect(report).toMatchObject({
      outcome: 'registered',
      model: 'laya-tiny',
      bucket: 64,
      path: artifactFolder(root, key),
    });
    const artifact = await readArtifact(key, artifactFolder(root, key));
    expect((await verifyTree(artifact)).v1).toBe(report.artifact_sha256);
    expect((await manifestOf(root)).imported).toMatchObject({
      at: '2026-01-02T03:04:05.000Z',
      from: 'laya-tiny-L64.tar.gz',
      archive_sha256: await sha256File(archive),
      platform: { soc: 'portable' },
      placement: { compute_units: 'PORTABLE_CPU', transitions: 0 },
      parity: { passed: true, hard_mismatches: 0 },
      artifact_sha256_check: report.artifact_sha256,
    });
    expect(await stagingOf(root)).toEqual(['artifacts/.staging/']);
  });

  it('keeps the manifest as it was but for the block it adds', async () => {
    const root = folder();
    await importArchive(order(), testContext(root));
    const { imported: _added, ...kept } = await manifestOf(root);
    const original = await readFile(join(artifactFolder(shop(), key), MANIFEST), 'utf8');
    expect(JSON.stringify(kept)).toBe(JSON.stringify(JSON.parse(original)));
  });

  it('has nothing to do when the same artifact is registered, and replaces it when told to', async () => {
    const root = folder();
    await importArchive(order(), testContext(root));
    const later = testContext(root, { now: () => new Date('2027-01-01T00:00:00Z') });
    expect((await importArchive(order(), later)).outcome).toBe('already-registered');
    expect((await manifestOf(root)).imported.at).toContain('2026');
    expect((await importArchive(order({ force: true }), later)).outcome).toBe('registered');
    expect((await manifestOf(root)).imported.at).toContain('2027');
  });

  // R02
  it.each([false, true])(
    'registers nothing when the parity gate fails, and keeps a record (force: %p)',
    async (force) => {
      const root = folder();
      if (force) await importArchive(order(), testContext(root));
      const before = await treeOf(join(root, 'artifacts', 'laya-tiny')).catch(() => []);
      const report = await importArchive(order({ force, toolchain: wrong }), testContext(root));
      expect(report).toMatchObject({ outcome: 'rejected', code: 'PARITY_FAILED' });
      expect(JSON.parse(await readFile(report.path, 'utf8'))).toMatchObject({ status: 'rejected', stage: 'parity' });
      const after = (await treeOf(join(root, 'artifacts', 'laya-tiny'))).filter((path) => path !== '4defbfb4419a/');
      expect(after).toEqual(before.filter((path) => path !== '4defbfb4419a/'));
      expect(await stagingOf(root)).toEqual(['artifacts/.staging/']);
    },
  );

  it('refuses an artifact whose operations do not all run on the device', async () => {
    const root = folder();
    const placement = async () =>
      ({ compute_units: 'PORTABLE_CPU', ops: { cpu: 3, gpu: 1 }, transitions: 2, operations: {} }) as const;
    const report = await importArchive(order({ toolchain: { ...toolchain, placement } }), testContext(root));
    expect(report).toMatchObject({ outcome: 'rejected', code: 'PLACEMENT_REFUSED' });
    expect(await locateArtifact(root, key)).toBeUndefined();
  });

  it('refuses a model whose bytes are changed while the gates run', async () => {
    const root = folder();
    const changing = {
      ...toolchain,
      open: async (model: string) => {
        const executable = await toolchain.open(model);
        await copyFile(archive, join(model, 'weights', 'more.bin'));
        return executable;
      },
    };
    expect(await codeOf(() => importArchive(order({ toolchain: changing }), testContext(root)))).toBe('TREE_MISMATCH');
    expect(await locateArtifact(root, key)).toBeUndefined();
    expect((await treeOf(root)).filter((path) => path.includes('bc1s-masked'))).toEqual([]);
  });

  it.each(['unpack', 'resolve', 'place', 'parity'])('registers nothing when it is stopped in %s', async (stage) => {
    const root = folder();
    const controller = new AbortController();
    const emit = (event: Event): void => {
      if (event.kind === 'stage_started' && event.stage === stage) controller.abort(new InterruptedError('SIGINT'));
    };
    const context = testContext(root, { signal: controller.signal, emit });
    expect(await codeOf(() => importArchive(order(), context))).toBe('INTERRUPTED');
    expect((await treeOf(root)).filter((path) => path.includes('bc1s-masked') && !path.includes('.staging'))).toEqual(
      [],
    );
    expect((await importArchive(order(), testContext(root))).outcome).toBe('registered');
    expect(await stagingOf(root)).toEqual(['artifacts/.staging/']);
  });

  // R11
  it('lets one of several imports of one artifact register it', async () => {
    const root = folder();
    const reports = await Promise.all([1, 2, 3].map(() => importArchive(order(), testContext(root))));
    expect(reports.map(({ outcome }) => outcome).sort()).toEqual([
      'already-registered',
      'already-registered',
      'registered',
    ]);
  });
});
