import { randomBytes } from 'node:crypto';
import { appendFile, cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { buildDense, type DenseReport } from '../../../pipeline/dense/build.js';
import { emitDense } from '../../../pipeline/dense/emit.js';
import { denseFolder, readDense, requireDense, verifyDense } from '../../../registry/dense.js';
import { commitDense } from '../../../registry/dense-commit.js';
import { listArtifacts } from '../../../registry/list.js';
import { findModel } from '../../../registry/models.js';
import { sha256File } from '../../../registry/sha256.js';
import { hashTree } from '../../../registry/tree.js';
import { readCheckpoint } from '../../../runtime/checkpoint.js';
import { codeOf, treeOf, workspace } from '../../workspace.js';
import { cli } from '../cli.js';
import { testContext, testOrder } from '../context.js';

const makeFolder = workspace();
const model = findModel('laya-tiny');
const build = (root: string) => buildDense(testOrder(), testContext(root));

const first = join(tmpdir(), `laya-test-${randomBytes(6).toString('hex')}`);
let report: DenseReport;
beforeAll(async () => {
  report = await build(first);
}, 300_000);
afterAll(() => rm(first, { recursive: true, force: true }));

/** A root of the test's own in which the graph is registered. */
async function registered(): Promise<string> {
  const root = makeFolder();
  await cp(first, root, { recursive: true });
  return root;
}

describe('the any-length graph', () => {
  it('is built, gated on every golden row at 1e-4 and registered outside the artifacts', async () => {
    const root = await registered();
    expect(report).toMatchObject({ outcome: 'registered', rows: 404, path: denseFolder(first, model) });
    expect(report.prob_max_abs).toBeLessThan(1e-4);
    const { manifest } = await requireDense(root, model);
    expect(manifest.parity).toMatchObject({ tolerance: 1e-4, skipped_rows: 0, repeat_identical: true });
    expect(manifest.placement).toMatchObject({ compute_units: 'PORTABLE_CPU', transitions: 0 });
    expect(Object.keys(manifest.placement.ops ?? {})).toEqual(['cpu']);
    expect(await treeOf(denseFolder(root, model))).toEqual([
      'manifest.json',
      'model/',
      'model/model.onnx',
      'model/model.onnx.data',
    ]);
    expect(await listArtifacts(root)).toEqual([]);
    expect(await readdir(join(root, 'artifacts', '.staging'))).toEqual([]);
    expect(await build(root)).toMatchObject({ outcome: 'already-registered', rows: 404 });
  }, 300_000);

  it('is listed and verified beside the artifacts; a changed byte and a broken manifest spoil its own row', async () => {
    const root = await registered();
    const run = (...args: string[]) => cli(args, { LAYA_APPLE_CACHE: root });
    const path = 'portable/laya-tiny/4defbfb4419a/dense-any-fp32';
    const rows = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout);
    expect(await rows('list')).toMatchObject([{ path, graph: 'dense-any', bucket: null, problem: null }]);
    expect((await run('list')).stdout).toMatch(/laya-tiny +any +validated +portable/);
    const { integrity } = (await requireDense(root, model)).manifest;
    expect(await rows('verify', 'laya-tiny')).toMatchObject([
      { kind: 'any-length', path, ok: true, artifact_sha256: integrity.artifact_sha256 },
    ]);
    expect((await run('verify')).stdout).toContain('1 of 1 any-length graphs');
    await appendFile(join(denseFolder(root, model), 'model/model.onnx'), 'x');
    const damaged = await run('verify');
    expect([damaged.code, damaged.stdout]).toEqual([1, expect.stringContaining('TREE_MISMATCH')]);
    await writeFile(join(denseFolder(root, model), 'manifest.json'), '{');
    expect(await rows('list')).toMatchObject([{ path, problem: { code: 'MANIFEST_UNREADABLE' } }]);
  });

  it('is held against the references again by verify --deep', async () => {
    const root = await registered();
    const verify = (...args: string[]) => cli(['verify', 'laya-tiny', ...args], { LAYA_APPLE_CACHE: root });
    expect((await verify('--deep')).code).toBe(0);
    // Other weights with hashes that fit: only the gates can tell.
    const folder = denseFolder(root, model);
    const data = join(folder, 'model/model.onnx.data');
    const bytes = await readFile(data);
    for (let at = bytes.length - 65_536; at < bytes.length; at += 4) bytes[at + 3]! ^= 0x80;
    await writeFile(data, bytes);
    const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'));
    const { v1, v2, files } = await hashTree(join(folder, 'model'));
    Object.assign(manifest.integrity, { artifact_sha256: v1, tree_v2: v2, files });
    manifest.evidence.artifact_sha256 = v1;
    await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest));
    expect((await verify()).code).toBe(0);
    const { code, stdout } = await verify('--deep');
    expect([code, stdout]).toEqual([1, expect.stringContaining('PARITY_FAILED')]);
  }, 120_000);

  // Rule 8: the same checkpoint gives the same bytes.
  it('has the same bytes when it is emitted again', async () => {
    const checkpoint = await readCheckpoint('models/laya-tiny');
    const digests = [];
    for (const folder of [makeFolder(), makeFolder()]) {
      await emitDense(checkpoint, folder);
      digests.push([await sha256File(join(folder, 'model.onnx')), await sha256File(join(folder, 'model.onnx.data'))]);
    }
    expect(digests[0]).toEqual(digests[1]);
  });
});

describe('a registered any-length graph', () => {
  it('is refused with a changed byte, built again in its place, and read from the copy kept by a replacement', async () => {
    const root = await registered();
    const folder = denseFolder(root, model);
    const opened = await readDense(model, folder);
    await appendFile(join(folder, 'model', 'model.onnx.data'), 'x');
    expect(await codeOf(() => verifyDense(opened, sha256File))).toBe('TREE_MISMATCH');
    expect(await build(root)).toMatchObject({ outcome: 'registered' });
    await verifyDense(await requireDense(root, model), sha256File);

    await rename(folder, `${folder}.old-1`);
    expect((await requireDense(root, model)).folder).toBe(`${folder}.old-1`);
    expect(await build(root)).toMatchObject({ outcome: 'already-registered' });
    expect(await readdir(dirname(folder))).toEqual([basename(folder)]);
  }, 300_000);

  it('is refused when its record contradicts itself, or is about another model', async () => {
    const root = await registered();
    const folder = denseFolder(root, model);
    const path = join(folder, 'manifest.json');
    const text = await readFile(path, 'utf8');
    const withText = async (change: (text: string) => string): Promise<string> => {
      await writeFile(path, change(text));
      return codeOf(() => readDense(model, folder));
    };
    const figure = /"prob_max_abs": [^,]+/;
    expect(await withText((one) => one.replace(figure, '"prob_max_abs": 0.01'))).toBe('EVIDENCE_INCONSISTENT');
    expect(await withText((one) => one.replace('"tolerance": 0.0001', '"tolerance": 0.02'))).toBe(
      'EVIDENCE_INCONSISTENT',
    );
    expect(await withText((one) => one.replace('"laya-tiny"', '"laya"'))).toBe('SOURCE_MISMATCH');
    expect(await withText((one) => one.replace('"dense-any"', '"other"'))).toBe('MANIFEST_INVALID');
    expect(await withText(() => '{')).toBe('MANIFEST_UNREADABLE');
    await rm(folder, { recursive: true });
    expect(await codeOf(() => requireDense(root, model))).toBe('ARTIFACT_MISSING');
  }, 300_000);

  // B01: nothing but the declared entries is published.
  it('holds nothing but what was declared', async () => {
    const [root, staged] = [makeFolder(), makeFolder()];
    await mkdir(join(staged, 'model'));
    await writeFile(join(staged, 'manifest.json'), '{}');
    await writeFile(join(staged, 'extra'), '');
    expect(await codeOf(() => commitDense(root, model, staged, { replace: false }))).toBe('TREE_INVALID');
  });
});
