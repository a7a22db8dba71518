import { appendFile, cp, lstat, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { recordText } from '../../registry/durable.js';
import { findModel } from '../../registry/models.js';
import { packageRoot } from '../../registry/package-root.js';
import { artifactFolder, COMPILED, MANIFEST } from '../../registry/paths.js';
import { hashTree } from '../../registry/tree.js';
import { Laya } from '../../runtime/laya.js';
import { openModel } from '../../runtime/open.js';
import type { Manifest } from '../../schemas/generated/types.js';
import { registerLayaTiny } from '../registered.js';
import { codeOf, keptFolder, treeOf, workspace } from '../workspace.js';

const folder = workspace();
const store = keptFolder();
const KEY = { model: findModel('laya-tiny'), bucket: 64 };
const REQUEST = { context: 'I was charged twice.', questions: ['Is this about billing?'] };
const later = (): number => Date.now() + 60_000;

beforeAll(() => registerLayaTiny(store(), [64]), 240_000);

async function copied(): Promise<string> {
  const root = folder();
  await cp(join(store(), 'artifacts/laya-tiny'), join(root, 'artifacts/laya-tiny'), { recursive: true });
  return root;
}

/** Puts another whole artifact in the registered one's place: the same model with one more file. */
async function replace(root: string): Promise<string> {
  const [target, next] = [artifactFolder(root, KEY), join(root, 'next')];
  await cp(target, next, { recursive: true });
  await writeFile(join(next, COMPILED, 'analytics', 'more.bin'), 'x');
  const manifest = JSON.parse(await readFile(join(next, MANIFEST), 'utf8')) as Manifest;
  const { v1, v2, files } = await hashTree(join(next, COMPILED));
  Object.assign(manifest.integrity, { artifact_sha256: v1, tree_v2: v2, files });
  Object.assign(manifest.evidence!, { artifact_sha256: v1 });
  await writeFile(join(next, MANIFEST), recordText(manifest));
  await rename(target, join(root, 'previous'));
  await rename(next, target);
  return v1;
}

/** How every file below a folder looks to the file system. */
async function looks(root: string): Promise<Record<string, string>> {
  const entries = (await treeOf(root)).map(async (path) => {
    const { mtimeNs, ctimeNs, size, ino, mode } = await lstat(join(root, path), { bigint: true });
    return [path, `${mtimeNs} ${ctimeNs} ${size} ${ino} ${mode}`] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

describe('loading an artifact', () => {
  it('hashes at the first load and trusts the stamp at the next, until something changes', async () => {
    const root = await copied();
    const stampOf = async (): Promise<string> => {
      const model = await openModel('laya-tiny', { root, now: later });
      try {
        return (await model.load(64)).stamp;
      } finally {
        await model.close();
      }
    };
    expect([await stampOf(), await stampOf()]).toEqual(['written', 'used']);
    await appendFile(join(artifactFolder(root, KEY), COMPILED, 'metadata.json'), ' ');
    expect(await codeOf(stampOf)).toBe('TREE_MISMATCH');
  });

  // R20: what is loaded is what stands there then, and what the answer names.
  it('loads the artifact that took the place of the one whose manifest was read', async () => {
    const root = await copied();
    const laya = await Laya.open('laya-tiny', { root, device: 'cpu' });
    try {
      const hash = await replace(root);
      const { runtime } = await laya.predict(REQUEST);
      expect(runtime.artifact_revision).toBe(`L64:${hash.slice(0, 12)}`);
    } finally {
      await laya.close();
    }
  });

  it('tries again after a load that failed', async () => {
    const root = await copied();
    const path = join(artifactFolder(root, KEY), COMPILED, 'metadata.json');
    const text = await readFile(path);
    const model = await openModel('laya-tiny', { root });
    try {
      await writeFile(path, 'other');
      expect(await codeOf(() => model.load(64))).toBe('TREE_MISMATCH');
      await writeFile(path, text);
      expect((await model.load(64)).artifact.folder).toBe(artifactFolder(root, KEY));
    } finally {
      await model.close();
    }
  });

  // R19
  it('changes nothing in the artifact and the checkpoint', async () => {
    const root = await copied();
    const watched = [join(root, 'artifacts'), join(packageRoot(), 'models/laya-tiny')];
    const before = await Promise.all(watched.map(looks));
    const laya = await Laya.open('laya-tiny', { root });
    await laya.predict(REQUEST);
    await laya.close();
    expect(await Promise.all(watched.map(looks))).toEqual(before);
  });

  it('answers where no stamp and no translated model can be kept', async () => {
    const root = await copied();
    await writeFile(join(root, 'verified'), 'a file in place of the folder');
    const laya = await Laya.open('laya-tiny', { root });
    expect((await laya.predict(REQUEST)).runtime.backend).toBe('portable');
    await laya.close();
  });
});
