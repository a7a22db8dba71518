import { rename, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { commitSet, type StagedArtifact } from '../../registry/commit-set.js';
import { artifactFolder, MANIFEST } from '../../registry/paths.js';
import { codeOf, treeOf, workspace } from '../workspace.js';
import { keys, stage, state, write } from './staged-set.js';

const folder = workspace();
const now = () => new Date('2026-01-02T03:04:05Z');

describe('commitSet', () => {
  it('registers all, over what was there, and leaves no copies', async () => {
    const root = folder();
    expect(await commitSet(root, await stage(root, [96]), { now })).toEqual(['registered', 'registered', 'registered']);
    expect(await state(root)).toEqual(['new', 'new', 'new']);
    expect((await treeOf(root)).filter((path) => /\.(old|failed|pruning)-/.test(path))).toEqual([]);
  });

  // Every rename of the set fails once; what stood before stands afterwards.
  it.each([[[]], [[64]], [[64, 96, 128]], [[96]]])(
    'puts back what was there (%j) when any step fails',
    async (before) => {
      const expected = keys.map(({ bucket }) => (before.includes(bucket as never) ? 'old' : undefined));
      for (let failing = 0; ; failing++) {
        const root = folder();
        const artifacts = await stage(root, before);
        let renames = 0;
        let isOver = false;
        const step = async (from: string, to: string) => {
          if (!isOver && !basename(from).includes('.old-') && renames++ === failing) {
            isOver = true;
            throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
          }
          await rename(from, to);
        };
        const error = await commitSet(root, artifacts, { now, steps: { rename: step } }).then(
          () => undefined,
          (reason) => reason.code,
        );
        if (!isOver) break;
        expect([failing, error, await state(root)]).toEqual([failing, 'ENOSPC', expected]);
        expect((await treeOf(root)).filter((path) => /\.failed-/.test(path))).toEqual([]);
      }
    },
  );

  it('leaves a whole artifact that came meanwhile, and takes back the others when a folder is in the way', async () => {
    const root = folder();
    const artifacts = await stage(root, []);
    await write(artifactFolder(root, keys[0]!), 64, 'old');
    expect(await commitSet(root, artifacts.slice(0, 2), { now })).toEqual(['already-registered', 'registered']);
    expect(await state(root)).toEqual(['old', 'new', undefined]);
    const third = { ...artifacts[2]!, folder: join(root, 'none') };
    const again = { key: keys[1]!, folder: join(root, 'again'), replace: true };
    await write(again.folder, 96, 'newest');
    await expect(commitSet(root, [again, third], { now })).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await state(root)).toEqual(['old', 'new', undefined]);
  });

  it('puts all back when one is refused where it stands, or what comes last fails', async () => {
    for (const failing of [64, 128, 'last']) {
      const root = folder();
      const artifacts = await stage(root, [64, 128]);
      const confirm = async ({ key }: StagedArtifact, model: string): Promise<void> => {
        expect(model).toBe(join(artifactFolder(root, key), 'model.mlmodelc'));
        if (key.bucket === failing) throw new RangeError('the gate');
      };
      const last = async (): Promise<void> => {
        expect(await state(root)).toEqual(['new', 'new', 'new']);
        throw new RangeError('the gate');
      };
      await expect(commitSet(root, artifacts, { now, confirm }, last)).rejects.toThrow('the gate');
      expect(await state(root)).toEqual(['old', undefined, 'old']);
      expect((await treeOf(root)).filter((path) => /\.(old|failed|pruning)-/.test(path))).toEqual([]);
    }
  });

  it('refuses a staged folder with more than an artifact in it', async () => {
    const root = folder();
    const artifacts = await stage(root, [64]);
    await rename(join(artifacts[1]!.folder, MANIFEST), join(artifacts[1]!.folder, 'other.json'));
    expect(await codeOf(() => commitSet(root, artifacts, { now }))).toBe('TREE_INVALID');
    expect(await state(root)).toEqual(['old', undefined, undefined]);
  });

  it('shows readers nothing of a set that can be seen to be wrong before its first rename', async () => {
    const root = folder();
    const artifacts = await stage(root, [64]);
    await writeFile(join(artifacts[2]!.folder, 'BUILDING.json'), '{}');
    const moves: string[] = [];
    const step = async (from: string, to: string) => {
      moves.push(from);
      await rename(from, to);
    };
    expect(await codeOf(() => commitSet(root, artifacts, { now, steps: { rename: step } }))).toBe('TREE_INVALID');
    expect([moves, await state(root)]).toEqual([[], ['old', undefined, undefined]]);
  });
});
