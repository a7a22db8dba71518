import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { StagedArtifact } from '../../registry/commit-set.js';
import { type InstallSetOptions, installSet } from '../../registry/install-set.js';
import { artifactFolder, COMPILED, MANIFEST } from '../../registry/paths.js';
import { storeSteps } from '../../registry/steps.js';
import { treeOf, workspace } from '../workspace.js';
import { keys, stage, state, write } from './staged-set.js';

const folder = workspace();
const OPTIONS: InstallSetOptions = {
  now: () => new Date('2026-01-02T03:04:05Z'),
  beforePublish: async () => undefined,
};

/** The manifest with a field of its own, for what the gates add. */
async function proven({ key }: StagedArtifact, model: string): Promise<string> {
  const folder = dirname(model);
  const name = model.includes('.staging') ? MANIFEST : 'manifest.pending.json';
  const manifest = JSON.parse(await readFile(join(folder, name), 'utf8'));
  return JSON.stringify({ ...manifest, proven: key.bucket });
}

const leftovers = async (root: string): Promise<string[]> =>
  (await treeOf(root)).filter((path) => /\.(old|failed|pruning)-|PENDING|pending/.test(path));

describe('installSet', () => {
  it('proves each at the path that readers load, where they see none until all have passed', async () => {
    const root = folder();
    const seen: unknown[] = [];
    const outcomes = await installSet(
      root,
      await stage(root),
      async (one, model) => {
        seen.push([model, await state(root)]);
        return proven(one, model);
      },
      OPTIONS,
    );
    expect(outcomes).toEqual(['registered', 'registered', 'registered']);
    const nothing = [undefined, undefined, undefined];
    expect(seen).toEqual(keys.map((key) => [join(artifactFolder(root, key), COMPILED), nothing]));
    expect([await state(root), await leftovers(root)]).toEqual([['new', 'new', 'new'], []]);
    const manifest = JSON.parse(await readFile(join(artifactFolder(root, keys[1]!), MANIFEST), 'utf8'));
    expect(manifest.proven).toBe(96);
  });

  it('serves what is to be replaced until all have passed', async () => {
    const root = folder();
    const during: unknown[] = [];
    const prove = async (one: StagedArtifact, model: string): Promise<string> => {
      during.push(await state(root));
      return proven(one, model);
    };
    await installSet(root, await stage(root, [96]), prove, OPTIONS);
    expect(during).toEqual([1, 2, 3].map(() => [undefined, 'old', undefined]));
    expect([await state(root), await leftovers(root)]).toEqual([['new', 'new', 'new'], []]);
  });

  it('leaves an artifact that another process registered meanwhile', async () => {
    const root = folder();
    const set = await stage(root);
    await write(artifactFolder(root, keys[0]!), 64, 'old');
    expect(await installSet(root, set, proven, OPTIONS)).toEqual(['already-registered', 'registered', 'registered']);
    expect(await state(root)).toEqual(['old', 'new', 'new']);
  });

  // R02
  it.each([[[]], [[64, 128]]])('registers none when one is refused, or may not be published (%j)', async (before) => {
    const expected = keys.map(({ bucket }) => (before.includes(bucket as never) ? 'old' : undefined));
    for (const refused of [64, 96, 128, 'publish']) {
      const root = folder();
      const prove = (one: StagedArtifact, model: string): Promise<string> =>
        one.key.bucket === refused ? Promise.reject(new RangeError('the gate')) : proven(one, model);
      const beforePublish = (): Promise<void> =>
        refused === 'publish' ? Promise.reject(new RangeError('the gate')) : Promise.resolve();
      const set = await stage(root, before);
      await expect(installSet(root, set, prove, { ...OPTIONS, beforePublish })).rejects.toThrow('the gate');
      expect([refused, await state(root), await leftovers(root)]).toEqual([refused, expected, []]);
    }
  });

  // Every step of the registration fails once, at a time when readers see nothing of what is new.
  it.each(['rename', 'write', 'sync'] as const)(
    'shows nothing new until the rest is done: a %s fails',
    async (name) => {
      for (let failing = 1; ; failing++) {
        const root = folder();
        const set = await stage(root, [96]);
        const [call, seen]: [(...args: string[]) => Promise<void>, unknown[]] = [storeSteps()[name], []];
        let count = 0;
        let isPublishing = false;
        const faulty = async (...args: string[]): Promise<void> => {
          if (!isPublishing || args[1]?.endsWith(MANIFEST) || ++count !== failing) return call(...args);
          const [first, , third] = await state(root);
          seen.push([first, third]);
          throw Object.assign(new Error('disk'), { code: 'EIO' });
        };
        const beforePublish = async () => {
          isPublishing = true;
        };
        const run = installSet(root, set, proven, { ...OPTIONS, beforePublish, steps: { [name]: faulty } });
        const outcome = await run.then(
          () => 'registered',
          () => 'failed',
        );
        if (outcome === 'registered') break;
        expect([failing, seen]).toEqual([failing, [[undefined, undefined]]]);
        expect(await state(root)).toEqual([undefined, 'old', undefined]);
      }
    },
  );

  it('registers none when one that took a place is refused there', async () => {
    const root = folder();
    const confirm = () => Promise.reject(new RangeError('the gate'));
    await expect(installSet(root, await stage(root, [96]), proven, { ...OPTIONS, confirm })).rejects.toThrow(
      'the gate',
    );
    expect([await state(root), await leftovers(root)]).toEqual([[undefined, 'old', undefined], []]);
  });

  // Every step fails once: all are new, or what stood before stands.
  it.each([
    ['rename', []],
    ['write', []],
    ['rename', [96]],
    ['write', [96]],
    ['unlink', [96]],
  ] as const)('is all or nothing when a %s fails (before: %j)', async (name, before) => {
    const old = keys.map(({ bucket }) => ((before as readonly number[]).includes(bucket) ? 'old' : undefined));
    for (let failing = 1; ; failing++) {
      const root = folder();
      const set = await stage(root, before);
      let count = 0;
      const call = storeSteps()[name] as (...args: string[]) => Promise<void>;
      const faulty = async (...args: string[]): Promise<void> => {
        if (++count === failing) throw Object.assign(new Error('disk'), { code: 'EIO' });
        await call(...args);
      };
      const options = { ...OPTIONS, steps: { [name]: faulty } };
      const outcome = await installSet(root, set, proven, options).then(
        () => 'registered',
        () => 'failed',
      );
      const now = await state(root);
      expect([name, failing, now]).toEqual([name, failing, outcome === 'registered' ? ['new', 'new', 'new'] : old]);
      if (count < failing) break;
    }
  });
});
