import { spawnSync } from 'node:child_process';
import { chmod, link, mkdir, readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { readArchive } from '../../../registry/archive/read.js';
import { writeArchive } from '../../../registry/archive/write.js';
import { sha256File } from '../../../registry/sha256.js';
import { codeOf, treeOf, workspace, writeTree } from '../../workspace.js';
import { FILES, KEY, writeArtifact } from '../artifact.js';

const folder = workspace();
const options = { threads: 0, signal: new AbortController().signal };
const write = (artifact: string, target: string) => writeArchive(KEY, artifact, target, options);

async function exported(files: Readonly<Record<string, string>> = FILES): Promise<{ artifact: string; file: string }> {
  const [artifact, out] = [folder(), folder()];
  await writeArtifact(artifact, files);
  const { path } = await write(artifact, join(out, 'laya-tiny-L64.tar.gz'));
  return { artifact, file: path };
}

describe('writeArchive', () => {
  it('writes manifest and model in hash order, with its SHA-256 beside it', async () => {
    const { artifact, file } = await exported();
    const read = await readArchive(file, options);
    expect(read.members.map(({ path }) => path)).toEqual([
      'manifest.json',
      'model.mlmodelc',
      'model.mlmodelc/coremldata.bin',
      'model.mlmodelc/metadata.json',
      'model.mlmodelc/model.mil',
      'model.mlmodelc/weights',
      'model.mlmodelc/weights/weight.bin',
    ]);
    expect(await readFile(`${file}.sha256`, 'utf8')).toBe(`${await sha256File(file)}  ${basename(file)}\n`);
    expect(await treeOf(join(file, '..'))).toEqual([basename(file), `${basename(file)}.sha256`]);
    expect(gunzipSync(await readFile(file)).includes(await readFile(join(artifact, 'manifest.json')))).toBe(true);
  });

  // A11: times, modes, owners and the day leave no trace.
  it('gives the same bytes whatever the files look like', async () => {
    const { artifact, file } = await exported();
    const first = await sha256File(file);
    await chmod(join(artifact, 'model.mlmodelc/model.mil'), 0o600);
    await chmod(join(artifact, 'model.mlmodelc/weights'), 0o700);
    await utimes(join(artifact, 'manifest.json'), 1, 2);
    expect((await write(artifact, join(folder(), 'other name.tar.gz'))).sha256).toBe(first);
  });

  it('gives bytes that do not change from release to release', async () => {
    const { file } = await exported();
    const archive = await readFile(file);
    expect(archive.subarray(0, 10).toString('hex')).toBe('1f8b08000000000000ff');
    const tar = gunzipSync(archive);
    const header = (name: string) => tar.subarray(tar.indexOf(`${name}\0`), tar.indexOf(`${name}\0`) + 512);
    const fields = header('model.mlmodelc/model.mil').toString('latin1', 100, 265).replaceAll('\0', '.');
    const times = '00000000000.';
    expect(fields).toBe(`0000644.0000000.0000000.00000000015.${times}013677. 0${'.'.repeat(100)}ustar.00`);
    expect(header('model.mlmodelc/weights/').toString('latin1', 100, 108)).toBe('0000755\0');
  });

  it('keeps empty folders and long names', async () => {
    const artifact = folder();
    const long = `${'a'.repeat(60)}/${'b'.repeat(60)}.bin`;
    await writeTree(artifact, { [`model.mlmodelc/${long}`]: 'x' });
    await mkdir(join(artifact, 'model.mlmodelc/empty'));
    const { integrity } = await writeArtifact(artifact);
    const { path } = await write(artifact, join(folder(), 'a.tar.gz'));
    expect((await readArchive(path, options)).tree.v2).toBe(integrity.tree_v2);
  });

  it('replaces an older archive, with its sums', async () => {
    const { artifact, file } = await exported();
    await writeFile(file, 'old');
    await writeFile(`${file}.sha256`, 'old');
    const { sha256 } = await write(artifact, file);
    expect(await readFile(`${file}.sha256`, 'utf8')).toContain(sha256);
    expect((await readArchive(file, options)).sha256).toBe(sha256);
  });

  // Verified while it is written: the bytes that were hashed are the bytes in the archive.
  const damages: [string, string, (artifact: string) => Promise<unknown>][] = [
    ['a changed file', 'TREE_MISMATCH', (artifact) => writeFile(join(artifact, 'model.mlmodelc/model.mil'), 'other')],
    ['a missing file', 'TREE_MISMATCH', (artifact) => rm(join(artifact, 'model.mlmodelc/weights/weight.bin'))],
    ['an extra folder', 'TREE_MISMATCH', (artifact) => mkdir(join(artifact, 'model.mlmodelc/more'))],
    [
      'an extra companion',
      'ARCHIVE_COMPANION',
      (artifact) => writeFile(join(artifact, 'model.mlmodelc/.DS_Store'), ''),
    ],
    ['an unsafe name', 'ARCHIVE_NAME', (artifact) => writeFile(join(artifact, 'model.mlmodelc/a b'), '')],
    ['a broken manifest', 'MANIFEST_UNREADABLE', (artifact) => writeFile(join(artifact, 'manifest.json'), '{')],
    ['no model', 'TREE_INCOMPLETE', (artifact) => rm(join(artifact, 'model.mlmodelc'), { recursive: true })],
    // A12: the importer would refuse a link.
    ['a link', 'TREE_INVALID', (artifact) => symlink('model.mil', join(artifact, 'model.mlmodelc/link'))],
  ];

  it.each(damages)('leaves nothing of an artifact with %s', async (_what, code, damage) => {
    const [artifact, out] = [folder(), folder()];
    await writeArtifact(artifact);
    await damage(artifact);
    expect(await codeOf(() => write(artifact, join(out, 'a.tar.gz')))).toBe(code);
    expect(await treeOf(out)).toEqual([]);
  });

  it('refuses what the importer would take for a bomb', async () => {
    const [artifact, out] = [folder(), folder()];
    await writeTree(artifact, { 'model.mlmodelc/weights/zeros.bin': new Uint8Array(20 << 20) });
    await writeArtifact(artifact);
    expect(await codeOf(() => write(artifact, join(out, 'a.tar.gz')))).toBe('ARCHIVE_LIMIT');
    expect(await treeOf(out)).toEqual([]);
  });

  // A12: two names of one file are two files in the archive.
  it('copies the bytes of hard-linked files', async () => {
    const [artifact, first] = [folder(), folder()];
    const { integrity } = await writeArtifact(artifact);
    const weights = join(artifact, 'model.mlmodelc/weights/weight.bin');
    await rename(weights, join(first, 'weight.bin'));
    await link(join(first, 'weight.bin'), weights);
    const { path } = await write(artifact, join(first, 'a.tar.gz'));
    expect((await readArchive(path, options)).tree.v2).toBe(integrity.tree_v2);
  });

  it('says so when the archive can not be written, and leaves nothing when it is stopped', async () => {
    const [artifact, out] = [folder(), folder()];
    await writeArtifact(artifact);
    await writeFile(join(out, 'file'), '');
    expect(await codeOf(() => write(artifact, join(out, 'file/a.tar.gz')))).toBe('ARCHIVE_UNWRITABLE');
    expect(await codeOf(() => write(artifact, join(out, 'gone/a.tar.gz')))).toBe('ARCHIVE_UNWRITABLE');
    const stopped = { threads: 0, signal: AbortSignal.abort(new RangeError('stopped')) };
    await expect(writeArchive(KEY, artifact, join(out, 'a.tar.gz'), stopped)).rejects.toThrow('stopped');
    expect(await treeOf(out)).toEqual(['file']);
  });

  it('is read by tar and by Python', async () => {
    const { file } = await exported();
    const out = folder();
    expect(spawnSync('tar', ['-xzf', file, '-C', out]).status).toBe(0);
    expect(await readFile(join(out, 'model.mlmodelc/weights/weight.bin'), 'utf8')).toBe(FILES['weights/weight.bin']);
    const script = 'import sys, tarfile; print([m.name for m in tarfile.open(sys.argv[1], "r:gz")])';
    const { stdout } = spawnSync('python3', ['-I', '-c', script, file], { encoding: 'utf8' });
    expect(stdout).toContain("'model.mlmodelc/weights/weight.bin'");
  });
});
