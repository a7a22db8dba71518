import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { findModel } from '../../registry/models.js';
import { artifactFolder } from '../../registry/paths.js';
import { sha256File } from '../../registry/sha256.js';
import { registerLayaTiny } from '../registered.js';
import { keptFolder, treeOf, workspace } from '../workspace.js';
import { cli } from './cli.js';

const folder = workspace();
const store = keptFolder();
const model = findModel('laya-tiny');

beforeAll(() => registerLayaTiny(store(), [64, 96]));

const run = (root: string, ...args: string[]) => cli(args, { LAYA_APPLE_CACHE: root });
const exportTo = async (out: string): Promise<string> => {
  const { code, stderr } = await run(store(), 'export', 'laya-tiny', '--out', out);
  if (code !== 0) throw new Error(stderr);
  return join(out, 'laya-tiny-L64.tar.gz');
};

describe('export', () => {
  it('writes an archive for each registered bucket, with its sums', async () => {
    const out = folder();
    const { code, stdout } = await run(store(), 'export', 'laya-tiny', '--out', join(out, 'new'), '--json');
    expect(code).toBe(0);
    const records = JSON.parse(stdout);
    expect(records.map((one: { bucket: number }) => one.bucket)).toEqual([64, 96]);
    for (const { path, archive_sha256 } of records) {
      expect(await sha256File(path)).toBe(archive_sha256);
      expect(await readFile(`${path}.sha256`, 'utf8')).toContain(archive_sha256);
    }
    expect(await treeOf(join(out, 'new'))).toHaveLength(4);
  });

  it('takes a file name for one bucket only', async () => {
    const out = folder();
    const file = join(out, 'mine.tar.gz');
    expect((await run(store(), 'export', 'laya-tiny', '--length', '64', '-o', file)).code).toBe(0);
    expect(await treeOf(out)).toEqual(['mine.tar.gz', 'mine.tar.gz.sha256']);
    const both = await run(store(), 'export', 'laya-tiny', '-o', file);
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('USAGE')]);
  });

  it('names what is missing', async () => {
    for (const args of [['laya-tiny', '--length', '128'], ['laya']]) {
      const { code, stderr } = await run(store(), 'export', ...args);
      expect([code, stderr]).toEqual([1, expect.stringContaining('ARTIFACT_MISSING')]);
    }
  });

  it('leaves nothing of an artifact that is not whole', async () => {
    const [root, out] = [folder(), folder()];
    const key = { model, bucket: 64 };
    await cp(artifactFolder(store(), key), artifactFolder(root, key), { recursive: true });
    await writeFile(join(artifactFolder(root, key), 'model.mlmodelc', 'model.mil'), 'other');
    const { code, stderr } = await run(root, 'export', 'laya-tiny', '--out', out);
    expect([code, stderr]).toEqual([1, expect.stringContaining('TREE_MISMATCH')]);
    expect(await treeOf(out)).toEqual([]);
  });
});

describe('import', () => {
  it('registers archives, and answers with them', async () => {
    const [root, out] = [folder(), folder()];
    const first = await exportTo(out);
    const both = await run(root, 'import', first, join(out, 'laya-tiny-L96.tar.gz'), '--json');
    expect(both.code).toBe(0);
    expect(JSON.parse(both.stdout).map((one: { outcome: string }) => one.outcome)).toEqual([
      'registered',
      'registered',
    ]);
    const questions = JSON.stringify(['Is this about billing?']);
    const answer = await run(
      root,
      'predict',
      'laya-tiny',
      '--context',
      'I was charged twice.',
      '--questions',
      questions,
    );
    expect(JSON.parse(answer.stdout).runtime.model).toBe('laya-tiny');
  });

  it('checks the digest that was asked for', async () => {
    const [root, out] = [folder(), folder()];
    const file = await exportTo(out);
    const sums = (await readFile(`${file}.sha256`, 'utf8')).split(' ')[0]!;
    const other = await run(root, 'import', file, '--expect-sha256', 'a'.repeat(64));
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('ARCHIVE_DIGEST')]);
    expect(await treeOf(root)).toEqual(['artifacts/', 'artifacts/.staging/']);
    expect((await run(root, 'import', file, '--expect-sha256', sums)).code).toBe(0);
    for (const args of [
      [file, file, '--expect-sha256', sums],
      [file, '--expect-sha256', 'abc'],
    ])
      expect((await run(root, 'import', ...args)).code).toBe(2);
  });

  it('goes on with the next archive after one that is refused', async () => {
    const [root, out] = [folder(), folder()];
    const file = await exportTo(out);
    await writeFile(join(out, 'bad.tar.gz'), 'no archive');
    const { code, stdout } = await run(root, 'import', join(out, 'bad.tar.gz'), file, join(out, 'gone'), '--json');
    expect(code).toBe(1);
    const outcomes = JSON.parse(stdout).map(
      (one: { outcome: string; error?: { code: string } }) => one.error?.code ?? one.outcome,
    );
    expect(outcomes).toEqual(['ARCHIVE_CORRUPT', 'registered', 'ARCHIVE_UNREADABLE']);
  });

  it('names a folder or a missing file for what it is', async () => {
    const root = folder();
    for (const file of [root, join(root, 'gone.tar.gz')]) {
      const { code, stderr } = await run(root, 'import', file);
      expect([code, stderr]).toEqual([1, expect.stringContaining('ARCHIVE_UNREADABLE')]);
    }
  });
});

describe('inspect', () => {
  it('tells what an archive holds and writes nothing', async () => {
    const [root, out] = [folder(), folder()];
    const file = await exportTo(out);
    const { code, stdout } = await run(root, 'inspect', file, '--json');
    expect(code).toBe(0);
    const record = JSON.parse(stdout);
    expect(record).toMatchObject({
      archive_sha256: await sha256File(file),
      fits_this_release: true,
      can_be_proven_here: true,
    });
    expect(record.members.map((one: { path: string }) => one.path)).toContain('model.mlmodelc/weights/weight.bin');
    expect((await run(root, 'inspect', file)).stdout).toContain('everything fits');
    expect(await treeOf(root)).toEqual([]);
  });

  it('refuses what is no archive of an artifact', async () => {
    const root = folder();
    await writeFile(join(root, 'text'), 'text');
    const { code, stderr } = await run(root, 'inspect', join(root, 'text'));
    expect([code, stderr]).toEqual([1, expect.stringContaining('ARCHIVE_CORRUPT')]);
  });
});
