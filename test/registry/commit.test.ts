import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { commitArtifact } from '../../registry/commit.js';
import { locateArtifact } from '../../registry/locate.js';
import { artifactFolder, COMPILED, MANIFEST } from '../../registry/paths.js';
import { readArtifact, verifyTree } from '../../registry/read.js';
import { storeAccess } from '../../registry/staging.js';
import type { StoreSteps } from '../../registry/steps.js';
import { codeOf, treeOf, workspace, writeTree } from '../workspace.js';
import { FILES, KEY, writeArtifact } from './artifact.js';

const folder = workspace();
const sync = async (): Promise<void> => undefined;

/** Which build is served now, told by a file of its model; the artifact must be whole. */
async function served(root: string): Promise<string | undefined> {
  const found = await locateArtifact(root, KEY);
  if (found === undefined) return undefined;
  await verifyTree(await readArtifact(KEY, found));
  return readFile(join(found, COMPILED, 'model.mil'), 'utf8');
}

async function staged(root: string, build: string): Promise<string> {
  const path = join(root, 'artifacts', '.staging', build);
  await writeArtifact(path, { ...FILES, 'model.mil': build });
  return path;
}

const commit = async (root: string, build: string, replace: boolean, steps?: Partial<StoreSteps>) =>
  commitArtifact(root, KEY, await staged(root, build), { replace, ...(steps ? { steps } : {}) });

describe('commitArtifact', () => {
  // B01: exactly the declared files, none of the build's own.
  it('registers exactly the declared files', async () => {
    const root = folder();
    expect(await commit(root, 'one', false)).toBe('registered');
    const entries = [
      MANIFEST,
      `${COMPILED}/`,
      `${COMPILED}/weights/`,
      ...Object.keys(FILES).map((f) => `${COMPILED}/${f}`),
    ];
    expect(await treeOf(artifactFolder(root, KEY))).toEqual(entries.sort());
  });

  it('refuses a staged folder that holds anything else', async () => {
    const root = folder();
    const path = await staged(root, 'one');
    await writeTree(path, { 'BUILDING.json': '{}' });
    expect(await codeOf(() => commitArtifact(root, KEY, path, { replace: false }))).toBe('TREE_INVALID');
    expect(await served(root)).toBeUndefined();
  });

  // R02: bytes that changed on their way are not what was proven.
  it('puts the previous artifact back when the new one is not whole at its path', async () => {
    const root = folder();
    await commit(root, 'one', false);
    const damaging = async (from: string, to: string): Promise<void> => {
      await rename(from, to);
      if (from.endsWith('two')) await writeFile(join(to, COMPILED, 'weights/weight.bin'), 'others');
    };
    expect(await codeOf(() => commit(root, 'two', true, { rename: damaging }))).toBe('TREE_MISMATCH');
    expect(await served(root)).toBe('one');
    expect((await readdir(dirname(artifactFolder(root, KEY)))).length).toBe(1);
  });

  it('leaves what another process registered while its own was checked', async () => {
    const root = folder();
    await commit(root, 'one', false);
    const third = await staged(root, 'three');
    const target = artifactFolder(root, KEY);
    let isDone = false;
    const meanwhile = async (from: string, to: string): Promise<void> => {
      await rename(from, to);
      if (!from.endsWith('two')) return;
      await writeFile(join(to, COMPILED, 'weights/weight.bin'), 'others');
      setImmediate(async () => {
        await rename(target, join(root, 'elsewhere'));
        await rename(third, target);
        isDone = true;
      });
    };
    await commit(root, 'two', true, { rename: meanwhile }).catch(() => undefined);
    expect([isDone, await served(root)]).toEqual([true, 'three']);
  });

  it('leaves a registered artifact as it is unless told to replace it', async () => {
    const root = folder();
    await commit(root, 'one', false);
    expect(await commit(root, 'two', false)).toBe('already-registered');
    expect(await served(root)).toBe('one');
    expect(await commit(root, 'three', true)).toBe('registered');
    expect(await served(root)).toBe('three');
    expect(await treeOf(dirname(artifactFolder(root, KEY)))).not.toContainEqual(expect.stringContaining('.old-'));
  });

  // B02: a replacement that fails at any of its renames leaves the previous artifact registered.
  it.each([1, 2])('keeps the previous artifact when rename %i fails', async (failing) => {
    const root = folder();
    await commit(root, 'one', false);
    let count = 0;
    const faulty: Partial<StoreSteps> = {
      sync,
      rename: async (from, to) => {
        if (++count === failing) throw Object.assign(new Error('disk'), { code: 'EIO' });
        await rename(from, to);
      },
    };
    await expect(commit(root, 'two', true, faulty)).rejects.toThrow('disk');
    expect(await served(root)).toBe('one');
  });

  // A process that dies between the renames can't put anything back.
  it('serves the previous artifact between the renames, and restores it with the next commit', async () => {
    const root = folder();
    await commit(root, 'one', false);
    const target = artifactFolder(root, KEY);
    await rename(target, `${target}.old-4194305`);
    expect(await served(root)).toBe('one');
    expect(await commit(root, 'two', false)).toBe('already-registered');
    expect(await locateArtifact(root, KEY)).toBe(target);
    expect(await served(root)).toBe('one');
  });

  // The copy of a process at work is about to be put back, or removed: moved to the target it could be removed there.
  it('leaves the kept copy of a process that still runs', async () => {
    const root = folder();
    const target = artifactFolder(root, KEY);
    await commit(root, 'one', false);
    await rename(target, `${target}.old-${process.ppid}`);
    expect(await commit(root, 'two', false)).toBe('registered');
    expect(await served(root)).toBe('two');
    expect(await readdir(dirname(target))).toEqual(['bc1s-masked-L64-B1', `bc1s-masked-L64-B1.old-${process.ppid}`]);
  });

  it('is not fooled by a kept copy without a manifest', async () => {
    const root = folder();
    await mkdir(`${artifactFolder(root, KEY)}.old-1`, { recursive: true });
    expect(await served(root)).toBeUndefined();
  });

  // R11: rename takes an empty folder; a file or a link is refused.
  it('registers over an empty folder and refuses a file', async () => {
    const root = folder();
    await mkdir(artifactFolder(root, KEY), { recursive: true });
    expect(await commit(root, 'one', false)).toBe('registered');
    const other = folder();
    await mkdir(dirname(artifactFolder(other, KEY)), { recursive: true });
    await writeFile(artifactFolder(other, KEY), 'a file');
    expect(await codeOf(() => commit(other, 'one', false))).toBe('TARGET_OCCUPIED');
  });

  // R10: a folder of the store that is a link or mount to another volume.
  it('says that a rename can not leave the volume, and keeps what was there', async () => {
    const root = folder();
    await commit(root, 'one', false);
    const rename_ = (): Promise<void> => Promise.reject(Object.assign(new Error('no'), { code: 'EXDEV' }));
    const replacing = storeAccess(root, () => commit(root, 'two', true, { rename: rename_ }));
    expect(await codeOf(() => replacing)).toBe('CROSS_DEVICE');
    expect(await served(root)).toBe('one');
  });

  it('lets one of many builders register, and serves a whole artifact throughout', async () => {
    const root = folder();
    const builds = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => staged(root, name)));
    const outcomes = await Promise.all(builds.map((path) => commitArtifact(root, KEY, path, { replace: false })));
    expect(outcomes.filter((one) => one === 'registered')).toHaveLength(1);
    expect(await served(root)).toMatch(/^[a-e]$/);
  });

  // R12: content is flushed before the rename, the folder after it.
  it('flushes everything staged before the rename, and the parent folder after it', async () => {
    const root = folder();
    const calls: string[] = [];
    const recorded: Partial<StoreSteps> = {
      rename: async (from, to) => {
        calls.push('rename');
        await rename(from, to);
      },
      sync: async (path) => {
        calls.push(`sync ${path === dirname(artifactFolder(root, KEY)) ? 'parent' : path}`);
      },
    };
    await commit(root, 'one', false, recorded);
    const path = join(root, 'artifacts/.staging/one');
    const folders = [path, join(path, COMPILED), join(path, COMPILED, 'weights')];
    const flushed = [...folders, join(path, MANIFEST), ...Object.keys(FILES).map((file) => join(path, COMPILED, file))];
    expect(calls.slice(0, -2).sort()).toEqual(flushed.map((one) => `sync ${one}`).sort());
    expect(calls.slice(-2)).toEqual(['rename', 'sync parent']);
  });
});
