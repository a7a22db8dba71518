import { appendFile, lstat, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { listArtifacts } from '../../registry/list.js';
import { artifactFolder, COMPILED } from '../../registry/paths.js';
import { shareFiles } from '../../registry/sharing.js';
import type { StoreSteps } from '../../registry/steps.js';
import { hashTree } from '../../registry/tree.js';
import { filesBelow, freedBytes, totalBytes, uniqueBytes } from '../../registry/usage.js';
import { verifyListing } from '../../registry/verify-listing.js';
import { workspace, writeTree } from '../workspace.js';
import { FILES, KEY, writeArtifact } from './artifact.js';

const folder = workspace();
const WEIGHTS = 'weights/weight.bin';
const LARGE = 'w'.repeat(1 << 20);
const key = (bucket: number) => ({ ...KEY, bucket });
const place = (root: string, bucket: number): string => artifactFolder(root, key(bucket));
const weightsOf = (root: string, bucket: number): string => join(place(root, bucket), COMPILED, WEIGHTS);

/** An artifact whose weights are large and whose program is its bucket's own. */
async function build(root: string, bucket: number, weights = LARGE): Promise<void> {
  await writeArtifact(place(root, bucket), { ...FILES, 'model.mil': `L${bucket}`, [WEIGHTS]: weights }, (manifest) =>
    Object.assign(manifest.artifact, { length: bucket }),
  );
}

/** Takes a built artifact back to staging, shares what it can share there as a build does, and registers it. */
async function share(root: string, bucket: number, steps: Partial<StoreSteps> = {}): Promise<string[]> {
  const staged = join(root, 'staged');
  await rename(place(root, bucket), staged);
  try {
    const model = join(staged, COMPILED);
    return await shareFiles(root, key(bucket), model, await hashTree(model), steps);
  } finally {
    await rename(staged, place(root, bucket));
  }
}

const inodes = (...paths: string[]): Promise<number[]> =>
  Promise.all(paths.map(async (path) => (await lstat(path)).ino));

describe('shareFiles', () => {
  it('stores the weights of four buckets once, and hashes stay right', async () => {
    const root = folder();
    await build(root, 64);
    const one = uniqueBytes(filesBelow(place(root, 64)));
    for (const bucket of [96, 128, 256]) {
      await build(root, bucket);
      expect(await share(root, bucket)).toEqual([WEIGHTS]);
    }
    const all = filesBelow(join(root, 'artifacts'));
    expect(totalBytes(all)).toBeGreaterThan(3.9 * one);
    expect(uniqueBytes(all)).toBeLessThan(1.1 * one);
    expect(freedBytes(filesBelow(place(root, 96)))).toBeLessThan(0.1 * one);
    const rows = await Promise.all((await listArtifacts(root)).map((row) => verifyListing(root, row)));
    expect(rows.map(({ problem }) => problem)).toEqual([undefined, undefined, undefined, undefined]);
    expect(await readdir(join(place(root, 96), COMPILED, 'weights'))).toEqual(['weight.bin']);
  });

  it('leaves the others whole when one goes', async () => {
    const root = folder();
    await build(root, 64);
    await build(root, 96);
    await share(root, 96);
    await rm(place(root, 64), { recursive: true });
    const [row] = await listArtifacts(root);
    expect((await verifyListing(root, row!)).problem).toBeUndefined();
  });

  it('does it once', async () => {
    const root = folder();
    await build(root, 64);
    await build(root, 96);
    await share(root, 96);
    const refuse = (): Promise<void> => Promise.reject(new Error('a second link'));
    expect(await share(root, 96, { link: refuse })).toEqual([WEIGHTS]);
  });

  // Nothing is taken for equal because a manifest says so.
  it.each([
    ['was damaged', (path: string) => writeFile(path, LARGE.replace('w', 'x'))],
    ['is longer by now', (path: string) => appendFile(path, 'x')],
    ['is gone', (path: string) => rm(path)],
    [
      'is a link to the same bytes',
      async (path: string) => {
        await rename(path, `${path}.moved`);
        await symlink(`${path}.moved`, path);
      },
    ],
    [
      'is a folder',
      (path: string) =>
        rm(path)
          .then(() => mkdir(path))
          .then(() => undefined),
    ],
  ])('does not link to a file that %s', async (_name, spoil) => {
    const root = folder();
    await build(root, 64);
    await build(root, 96);
    await spoil(weightsOf(root, 64));
    expect(await share(root, 96)).toEqual([]);
    expect((await lstat(weightsOf(root, 96))).nlink).toBe(1);
  });

  it("does not keep a link to a file that took the hashed one's place", async () => {
    const root = folder();
    await build(root, 64);
    await build(root, 96);
    const link = async (_existing: string, path: string): Promise<void> => writeFile(path, 'another file');
    expect(await share(root, 96, { link })).toEqual([]);
    expect(await readdir(join(place(root, 96), COMPILED, 'weights'))).toEqual(['weight.bin']);
  });

  it('shares nothing with other revisions, and no small files', async () => {
    const root = folder();
    await writeArtifact(join(root, 'artifacts/laya-tiny/0123456789ab/bc1s-masked-L64-B1'), {
      ...FILES,
      [WEIGHTS]: LARGE,
    });
    await build(root, 96);
    expect(await share(root, 96)).toEqual([]);
    await build(root, 128, 'small');
    await build(root, 256, 'small');
    expect(await share(root, 256)).toEqual([]);
  });

  it.each(['EXDEV', 'EMLINK', 'ENOTSUP', 'EPERM'])('keeps the copy where linking gives %s', async (code) => {
    const root = folder();
    await build(root, 64);
    await build(root, 96);
    const link = (): Promise<void> => Promise.reject(Object.assign(new Error('no'), { code }));
    expect(await share(root, 96, { link })).toEqual([]);
    const [one, other] = await inodes(weightsOf(root, 64), weightsOf(root, 96));
    expect(one).not.toBe(other);
  });

  it.each([
    ['link', 'EIO'],
    ['rename', 'ENOSPC'],
  ])('passes on that %s gave %s, and leaves the copy', async (step, code) => {
    const root = folder();
    await build(root, 64);
    await build(root, 96);
    const fail = (): Promise<void> => Promise.reject(Object.assign(new Error('no'), { code }));
    await expect(share(root, 96, { [step]: fail })).rejects.toMatchObject({ code });
    expect(await readdir(join(place(root, 96), COMPILED, 'weights'))).toEqual(['weight.bin']);
  });

  it.each(['', '{}', '[', 'null'])('passes over a manifest with %j in it', async (text) => {
    const root = folder();
    await writeTree(place(root, 64), { 'manifest.json': text, [`${COMPILED}/${WEIGHTS}`]: LARGE });
    await build(root, 96);
    expect(await share(root, 96)).toEqual([]);
  });
});

describe('integrity.files', () => {
  it.each([
    ['another digest', (files: { sha256: string }[]) => void Object.assign(files[0]!, { sha256: 'a'.repeat(64) })],
    ['a file too few', (files: unknown[]) => void files.pop()],
  ])('is refused with %s', async (_name, change) => {
    const root = folder();
    await writeArtifact(place(root, 64), FILES, (manifest) => change(manifest.integrity.files!));
    const [row] = await listArtifacts(root);
    expect((await verifyListing(root, row!)).problem?.code).toBe('TREE_MISMATCH');
  });
});
