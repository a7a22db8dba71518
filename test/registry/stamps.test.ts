import { createHash } from 'node:crypto';
import { link, lstat, mkdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { openStampedFolder } from '../../registry/file-stamps.js';
import { artifactFolder, COMPILED, checkpointStampsFolder, stampsFolder } from '../../registry/paths.js';
import { readArtifact } from '../../registry/read.js';
import { verifyPlaced, verifyStamped } from '../../registry/stamps.js';
import type { Manifest, Stamp } from '../../schemas/generated/types.js';
import { codeOf, treeOf, workspace, writeTree } from '../workspace.js';
import { FILES, KEY, writeArtifact } from './artifact.js';

const folder = workspace();
/** Later than any change that a test makes. */
const later = (): number => Date.now() + 60_000;
const WEIGHTS = join(COMPILED, 'weights/weight.bin');

async function registered(change?: (manifest: Manifest) => void): Promise<string> {
  const root = folder();
  await writeArtifact(artifactFolder(root, KEY), FILES, change);
  return root;
}

async function load(root: string, now = later) {
  return verifyStamped(root, await readArtifact(KEY, artifactFolder(root, KEY)), now);
}

function asApple(manifest: Manifest): void {
  Object.assign(manifest.placement, { compute_units: 'CPU_AND_NE', ops: { ane: 3 } });
  Object.assign(manifest.evidence!, { kind: 'apple', profile: 'apple' });
}

const stampPath = (root: string): string =>
  join(stampsFolder(root), 'laya-tiny__4defbfb4419a__bc1s-masked-L64-B1.json');
const readStamp = async (root: string): Promise<Stamp> => JSON.parse(await readFile(stampPath(root), 'utf8'));

describe('verifyStamped', () => {
  it('hashes once, and not again while nothing changes', async () => {
    const root = await registered();
    const first = await load(root);
    expect(first.stamp).toBe('written');
    expect(await load(root)).toEqual({ v2: first.v2, stamp: 'used' });
    expect(await treeOf(join(root, 'verified'))).toHaveLength(2);
  });

  it('writes what the Python runtime would take for its own', async () => {
    const root = await registered();
    await load(root);
    const text: string[] = [];
    for (const path of ['coremldata.bin', 'metadata.json', 'model.mil', 'weights/weight.bin']) {
      const { size, mtimeNs, ino } = await stat(join(artifactFolder(root, KEY), COMPILED, path), { bigint: true });
      text.push(`model.mlmodelc/${path}:${size}:${mtimeNs}:${ino}`);
    }
    const { key, placement } = await readStamp(root);
    expect(key).toEqual({
      artifact_sha256: (await readArtifact(KEY, artifactFolder(root, KEY))).manifest.integrity.artifact_sha256,
      files_stat: createHash('sha256').update(text.join('')).digest('hex'),
      compute_units: 'PORTABLE_CPU',
      macos_build: null,
      coremltools: null,
    });
    expect(placement).toMatchObject({ compute_units: 'PORTABLE_CPU' });
  });

  // A change that puts size and time back shows in the ctime only, which the Python runtime does not look at.
  const changes: [string, (model: string) => Promise<void>][] = [
    [
      'other bytes of the same size and time',
      async (model) => {
        const path = join(model, 'weights/weight.bin');
        const { atime, mtime } = await lstat(path);
        await writeFile(path, 'WEIGHTS');
        await utimes(path, atime, mtime);
      },
    ],
    ['an added file', (model) => writeFile(join(model, 'extra.bin'), 'x')],
    ['an added folder', (model) => mkdir(join(model, 'extra')).then(() => undefined)],
    ['a removed file', (model) => rm(join(model, 'metadata.json'))],
    [
      'a file that took the place of another',
      async (model) => {
        await writeFile(join(model, '../new'), 'weightz');
        await rename(join(model, '../new'), join(model, 'weights/weight.bin'));
      },
    ],
  ];

  it.each(changes)('finds %s', async (_name, change) => {
    const root = await registered();
    await load(root);
    await change(join(artifactFolder(root, KEY), COMPILED));
    expect(await codeOf(() => load(root))).toMatch(/^TREE_/);
  });

  it('hashes again, and finds the bytes right, when only a name was added to them', async () => {
    const root = await registered();
    await load(root);
    await link(join(artifactFolder(root, KEY), WEIGHTS), join(root, 'another name'));
    expect((await load(root)).stamp).toBe('written');
  });

  it.each([
    ['changed just before', () => Date.now()],
    ['changed in the future', () => Date.now() - 3600_000],
  ])('writes none while the files %s', async (_name, now) => {
    const root = await registered();
    expect((await load(root, now)).stamp).toBe('unsettled');
    expect(await treeOf(root)).not.toContain('verified/');
  });

  const useless: [string, (stamp: Stamp) => unknown][] = [
    ['of the Python runtime alone', ({ key, placement }) => ({ key, placement })],
    ['of another artifact', (stamp) => ({ ...stamp, key: { ...stamp.key, artifact_sha256: 'a'.repeat(64) } })],
    [
      'of another tree',
      (stamp) => ({ ...stamp, laya_artifacts: { ...stamp.laya_artifacts, tree_v2: 'a'.repeat(64) } }),
    ],
    ['that is no record', () => []],
    ['with nothing in it', () => undefined],
  ];

  it.each(useless)('does not count a stamp %s', async (_name, change) => {
    const root = await registered();
    await load(root);
    await writeFile(stampPath(root), JSON.stringify(change(await readStamp(root))) ?? '');
    await writeFile(join(artifactFolder(root, KEY), WEIGHTS), 'WEIGHTS');
    expect(await codeOf(() => load(root))).toBe('TREE_MISMATCH');
  });

  // laya-apple would take a stamp for proof that its compute plan was looked at on this machine.
  it('writes none for an artifact of other evidence', async () => {
    const root = await registered(asApple);
    expect((await load(root)).stamp).toBe('not-ours');
    expect(await treeOf(root)).not.toContain('verified/');
  });

  // R19: a root that can't be written, by file in place of the folder, which holds for every user.
  it('works without a place for stamps', async () => {
    const root = await registered();
    await writeTree(root, { verified: 'a file' });
    expect((await load(root)).stamp).toBe('unwritable');
    expect((await load(root)).stamp).toBe('unwritable');
  });

  it('leaves nothing in the artifact', async () => {
    const root = await registered();
    const before = await treeOf(join(root, 'artifacts'));
    await load(root);
    await load(root);
    expect(await treeOf(join(root, 'artifacts'))).toEqual(before);
  });
});

describe('openStampedFolder', () => {
  const LARGE = Buffer.alloc(1 << 20, 7);
  const digestOf = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');

  async function hashAll(root: string, files: string, now = later): Promise<string[]> {
    const stamped = await openStampedFolder(root, files, now);
    const digests = [await stamped.digest(join(files, 'large')), await stamped.digest(join(files, 'small'))];
    await stamped.save();
    return digests;
  }

  it('remembers large files until they change', async () => {
    const [root, files] = [folder(), folder()];
    await writeTree(files, { large: LARGE, small: 'x' });
    const right = [digestOf(LARGE), digestOf('x')];
    expect([await hashAll(root, files), await hashAll(root, files)]).toEqual([right, right]);
    const [name] = await treeOf(checkpointStampsFolder(root));
    const place = join(checkpointStampsFolder(root), name!);
    const record = JSON.parse(await readFile(place, 'utf8'));
    expect(Object.keys(record.files)).toEqual([join(files, 'large')]);

    // It is the stamp that answers: one with another digest shows.
    record.files[join(files, 'large')].sha256 = 'a'.repeat(64);
    await writeFile(place, JSON.stringify(record));
    expect((await hashAll(root, files))[0]).toBe('a'.repeat(64));

    const { atime, mtime } = await stat(join(files, 'large'));
    await writeFile(join(files, 'large'), Buffer.alloc(1 << 20, 8));
    await utimes(join(files, 'large'), atime, mtime);
    expect((await hashAll(root, files))[0]).toBe(digestOf(Buffer.alloc(1 << 20, 8)));
  });

  it('remembers nothing of files that changed just before', async () => {
    const [root, files] = [folder(), folder()];
    await writeTree(files, { large: LARGE, small: 'x' });
    await hashAll(root, files, Date.now);
    expect(await treeOf(root)).toEqual([]);
  });

  it('works where nothing can be kept, and with a record that is none', async () => {
    const [root, files] = [folder(), folder()];
    await writeTree(files, { large: LARGE, small: 'x' });
    await hashAll(root, files);
    const [name] = await treeOf(checkpointStampsFolder(root));
    await writeFile(join(checkpointStampsFolder(root), name!), '{"path": 1}');
    expect((await hashAll(root, files))[0]).toBe(digestOf(LARGE));
    await rm(join(root, 'verified'), { recursive: true });
    await writeTree(root, { verified: 'a file' });
    expect((await hashAll(root, files))[0]).toBe(digestOf(LARGE));
  });

  it('passes on that a file can not be read', async () => {
    const stamped = await openStampedFolder(folder(), folder(), later);
    await expect(stamped.digest(join(folder(), 'gone'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('verifyPlaced', () => {
  /** Checks an artifact under a build of macOS; gives the stamp's outcome and how often the placement was looked at. */
  async function placed(root: string, macosBuild: string | null, check = async (): Promise<void> => undefined) {
    let looks = 0;
    const counted = async (): Promise<void> => {
      looks += 1;
      await check();
    };
    const artifact = await readArtifact(KEY, artifactFolder(root, KEY));
    const { stamp } = await verifyPlaced(root, artifact, { macosBuild, check: counted }, later);
    return [stamp, looks];
  }

  it('looks at bytes and placement once for each build of macOS', async () => {
    const root = await registered(asApple);
    expect(await placed(root, '24F74')).toEqual(['written', 1]);
    expect(await placed(root, '24F74')).toEqual(['used', 0]);
    expect(await placed(root, '25A1')).toEqual(['written', 1]);
    expect(await placed(root, '24F74')).toEqual(['written', 1]);
    expect(await placed(root, null)).toEqual(['not-ours', 1]);
    // No Python runtime has coremltools null, so that none takes this for its own check.
    expect((await readStamp(root)).key).toMatchObject({ macos_build: '24F74', coremltools: null });
  });

  it('is believed about the bytes by a load that asks for no placement', async () => {
    const root = await registered(asApple);
    await placed(root, '24F74');
    expect((await load(root)).stamp).toBe('used');
    const other = await registered();
    await load(other);
    expect(await placed(other, '24F74')).toEqual(['written', 1]);
  });

  it('keeps no stamp of a placement that was refused, and believes none of other bytes', async () => {
    const root = await registered(asApple);
    const refuse = async (): Promise<void> => Promise.reject(new Error('elsewhere'));
    await expect(placed(root, '24F74', refuse)).rejects.toThrow('elsewhere');
    expect(await placed(root, '24F74')).toEqual(['written', 1]);
    await writeFile(join(artifactFolder(root, KEY), WEIGHTS), 'WEIGHTS');
    expect(await codeOf(() => placed(root, '24F74'))).toBe('TREE_MISMATCH');
  });
});
