import { spawnSync } from 'node:child_process';
import { link, lstat, mkdir, readdir, readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { artifactFolder, artifactsFolder, COMPILED, MANIFEST, stagingFolder } from '../../registry/paths.js';
import { executePrune, type PruneOptions, planPrune } from '../../registry/prune.js';
import { storeSteps } from '../../registry/steps.js';
import { treeOf, workspace, writeTree } from '../workspace.js';
import { FILES, KEY, writeArtifact } from './artifact.js';

const folder = workspace();
const HOUR = 3600_000;
/** A process that has ended. */
const DEAD = spawnSync(process.execPath, ['-e', '']).pid;
const ALIVE = process.ppid;
const PLACE = 'artifacts/laya-tiny/4defbfb4419a/bc1s-masked-L64-B1';
const OLD_REVISION = 'artifacts/laya-tiny/0123456789ab/bc1s-masked-L64-B1';

const options = (change: Partial<PruneOptions> = {}): PruneOptions => ({
  superseded: false,
  quarantined: false,
  now: new Date(),
  ...change,
});
/** Two hours from now: everything is old enough. */
const later = (change: Partial<PruneOptions> = {}) => options({ now: new Date(Date.now() + 2 * HOUR), ...change });

async function plan(root: string, how = later()): Promise<[string, string][]> {
  return (await planPrune(root, how)).entries.map(({ path, reason }) => [path, reason]);
}

/** Plans and executes; gives the outcomes by path. */
async function prune(root: string, how = later(), steps = {}): Promise<[string, string][]> {
  const paths = (await planPrune(root, how)).entries.map(({ path }) => path);
  return (await executePrune(root, paths, { ...how, steps })).map(({ path, outcome }) => [path, outcome]);
}

const artifact = (root: string, path = PLACE, build = 'one') =>
  writeArtifact(join(root, path), { ...FILES, 'model.mil': build });

describe('planPrune', () => {
  const rules: [string, Record<string, string>, string | undefined][] = [
    ['staging of a dead process', { 'artifacts/.staging/a/BUILDING.json': `{"pid": ${DEAD}}` }, 'abandoned-staging'],
    ['staging of a process at work', { 'artifacts/.staging/a/BUILDING.json': `{"pid": ${ALIVE}}` }, undefined],
    ['staging of another host', { 'artifacts/.staging/a/BUILDING.json': `{"pid": ${DEAD}, "host": "x"}` }, undefined],
    ['staging of no possible process', { 'artifacts/.staging/a/BUILDING.json': '{"pid": true}' }, undefined],
    ['staging of process 0', { 'artifacts/.staging/a/BUILDING.json': '{"pid": 0}' }, undefined],
    [
      'staging that was given up',
      { 'artifacts/.staging/a/BUILDING.json': `{"pid": ${ALIVE}, "abandoned": true}` },
      'abandoned-staging',
    ],
    ['staging without a marker', { 'artifacts/.staging/a/x': '' }, 'abandoned-staging'],
    ['a stray file in staging', { 'artifacts/.staging/a': 'x' }, 'abandoned-staging'],
    ['a failed copy', { [`${PLACE}.failed-${DEAD}/x`]: '' }, 'failed-copy'],
    ['a failed copy of a process at work', { [`${PLACE}.failed-${ALIVE}/x`]: '' }, undefined],
    ['a replaced copy without manifest', { [`${PLACE}.old-${DEAD}/x`]: '' }, 'replaced-copy'],
    ['a replaced copy with manifest', { [`${PLACE}.old-${DEAD}/${MANIFEST}`]: '{}' }, undefined],
    ['a replaced copy of a process at work', { [`${PLACE}.old-${ALIVE}/x`]: '' }, undefined],
    ['an install that died', { [`${PLACE}/PENDING.json`]: `{"pid": ${DEAD}}` }, 'unpublished-install'],
    ['an install at work', { [`${PLACE}/PENDING.json`]: `{"pid": ${ALIVE}}` }, undefined],
    [
      'an install that was published',
      { [`${PLACE}/PENDING.json`]: `{"pid": ${DEAD}}`, [`${PLACE}/${MANIFEST}`]: '{}' },
      undefined,
    ],
    ['a claimed copy', { [`${PLACE}.pruning-${DEAD}-0123abcd/x`]: '' }, 'interrupted-prune'],
    ['a claimed copy with manifest', { [`${PLACE}.pruning-${DEAD}-0123abcd/${MANIFEST}`]: '{}' }, undefined],
    ['a claimed copy of a process at work', { [`${PLACE}.pruning-${ALIVE}-0123abcd/x`]: '' }, undefined],
    [
      'a claimed copy of staging at work',
      { [`artifacts/.staging/a.pruning-${DEAD}-0123abcd/BUILDING.json`]: `{"pid": ${ALIVE}}` },
      undefined,
    ],
    [
      'a claimed install at work',
      { [`${PLACE}.pruning-${DEAD}-0123abcd/PENDING.json`]: `{"pid": ${ALIVE}}` },
      undefined,
    ],
    ['a stamp without artifact', { 'verified/artifacts/laya-tiny__4defbfb4419a__x.json': '{}' }, 'unused-stamp'],
    [
      'a stamp with artifact',
      { 'verified/artifacts/laya-tiny__4defbfb4419a__x.json': '{}', 'artifacts/laya-tiny/4defbfb4419a/x/y': '' },
      undefined,
    ],
    ["a stamp's temporary file", { 'verified/artifacts/.x.json.1-0123abcd.tmp': '' }, 'unused-stamp'],
    ['a stamp of a checkpoint that is gone', { 'verified/checkpoints/x.json': '{"path": "/gone"}' }, 'unused-stamp'],
    ['a stamp of a checkpoint', { 'verified/checkpoints/x.json': '{"path": "/"}' }, undefined],
    ['a stamp of a checkpoint that is none', { 'verified/checkpoints/x.json': '[' }, 'unused-stamp'],
    ['a translated model of no artifact', { 'verified/portable/abc/model.onnx': '' }, 'unused-portable-model'],
    ['a damaged artifact', { [`${PLACE}/${MANIFEST}`]: '' }, undefined],
    ['part of an artifact', { [`${PLACE}/${COMPILED}/weights/weight.bin`]: '' }, undefined],
    [
      'an artifact of an unknown model',
      { [`artifacts/other/0123456789ab/bc1s-masked-L64-B1/${MANIFEST}`]: '' },
      undefined,
    ],
    ['an artifact of another revision', { [`${OLD_REVISION}/${MANIFEST}`]: '' }, undefined],
    ['a quarantined artifact', { 'artifacts/quarantine/x/QUARANTINED.json': '{}' }, undefined],
    ['a rejected record', { 'artifacts/rejected/x.json': '{}' }, undefined],
    [
      'a failed any-length graph',
      { [`portable/laya/c5d78730f349/dense-any-fp32.failed-${DEAD}/x`]: '' },
      'failed-copy',
    ],
    ['an any-length graph', { [`portable/laya/c5d78730f349/dense-any-fp32/${MANIFEST}`]: '' }, undefined],
    ['a lock', { 'artifacts/.locks/x.lock': '{}' }, undefined],
    [
      'other files',
      { 'artifacts/x': '', 'artifacts/laya-tiny/x': '', 'artifacts/laya-tiny/4defbfb4419a/x': '', x: '' },
      undefined,
    ],
  ];

  it.each(rules)('judges %s', async (_name, files, reason) => {
    const root = folder();
    await writeTree(root, files);
    expect((await plan(root)).map(([, why]) => why)).toEqual(reason === undefined ? [] : [reason]);
  });

  it('waits an hour before staging, installs, translated models and temporary files may go', async () => {
    const root = folder();
    await writeTree(root, {
      'artifacts/.staging/a/BUILDING.json': `{"pid": ${DEAD}}`,
      [`${PLACE}/PENDING.json`]: `{"pid": ${DEAD}}`,
      'verified/portable/abc/model.onnx': '',
      'verified/artifacts/.x.json.1-0123abcd.tmp': '',
    });
    expect(await plan(root, options())).toEqual([]);
    expect(await plan(root)).toHaveLength(4);
  });

  it('takes a week without a change for a sign that nobody works there, where no process can be asked', async () => {
    const root = folder();
    await writeTree(root, { 'artifacts/.staging/a/BUILDING.json': `{"pid": ${ALIVE}, "host": "x"}` });
    const daysOn = (days: number) => options({ now: new Date(Date.now() + days * 24 * HOUR) });
    expect([await plan(root, daysOn(6)), await plan(root, daysOn(8))]).toEqual([
      [],
      [['artifacts/.staging/a', 'abandoned-staging']],
    ]);
  });

  // The Python runtime's staging folders can be read by their owner only: who can't ask keeps them.
  it('takes staging that can not be looked into for somebody at work', async () => {
    const root = folder();
    await writeTree(root, { 'artifacts/.staging/a/BUILDING.json': '{}' });
    await rm(join(stagingFolder(root), 'a/BUILDING.json'));
    await symlink(join(stagingFolder(root), 'a/BUILDING.json'), join(stagingFolder(root), 'a/BUILDING.json'));
    expect(await plan(root)).toEqual([]);
  });

  it('lists other revisions and buckets that are not offered only when asked, and no other variant', async () => {
    const root = folder();
    await artifact(root);
    const superseded = [OLD_REVISION, PLACE.replace('L64', 'L32'), 'portable/laya/0123456789ab/dense-any-fp32'];
    for (const path of superseded) await writeTree(root, { [`${path}/${MANIFEST}`]: '' });
    for (const path of [PLACE.replace('-L64', '-w8-pt-L64'), OLD_REVISION.replace('laya-tiny', 'other')])
      await writeTree(root, { [`${path}/${MANIFEST}`]: '' });
    expect(await plan(root)).toEqual([]);
    const found = (await plan(root, later({ superseded: true }))).map(([path]) => path);
    expect(found).toEqual(superseded.sort());
  });

  // An artifact at its pinned path is another machine's, when it is not ours.
  it('never lists an artifact of another profile', async () => {
    const root = folder();
    await writeArtifact(join(root, PLACE), FILES, (manifest) => {
      Object.assign(manifest.platform, { soc: 'Apple M1', macos: '14.0', coremltools: '8.0' });
      manifest.placement.compute_units = 'CPU_AND_NE';
      delete manifest.evidence;
    });
    expect(await plan(root, later({ superseded: true, quarantined: true }))).toEqual([]);
  });

  it('keeps the translated models of registered artifacts', async () => {
    const root = folder();
    const { integrity } = await artifact(root);
    await writeTree(root, { [`verified/portable/${integrity.tree_v2}/model.onnx`]: '', 'verified/portable/x/y': '' });
    expect(await plan(root)).toEqual([['verified/portable/x', 'unused-portable-model']]);
  });

  it('tells path, reason, bytes and age, and what is kept', async () => {
    const root = folder();
    await writeTree(root, { [`${PLACE}.old-${DEAD}/${MANIFEST}`]: '{}', [`${PLACE}.failed-${DEAD}/a/b`]: '12345' });
    await link(join(root, `${PLACE}.failed-${DEAD}/a/b`), join(root, 'shared'));
    await writeFile(join(root, `${PLACE}.failed-${DEAD}/c`), '123');
    const found = await planPrune(root, later());
    expect(found).toMatchObject({ bytes: 8, freedBytes: 3, problems: [] });
    expect(found.entries).toEqual([
      { path: `${PLACE}.failed-${DEAD}`, reason: 'failed-copy', bytes: 8, age: expect.any(Number) },
    ]);
    expect(found.entries[0]!.age).toBeGreaterThan(7000);
    expect(found.kept.map(({ path }) => path)).toEqual([`${PLACE}.old-${DEAD}`]);
  });

  it('does not follow links, and is not stopped by one that leads nowhere', async () => {
    const [root, outside] = [folder(), folder()];
    await writeTree(outside, { 'a/x': '', 'b/c/x': '' });
    await mkdir(stagingFolder(root), { recursive: true });
    await symlink(join(outside, 'a'), join(stagingFolder(root), 'link'));
    await symlink(join(outside, 'gone'), join(stagingFolder(root), 'dangling'));
    await symlink(outside, join(artifactsFolder(root), 'laya-tiny'));
    await symlink(outside, join(root, 'verified'));
    expect(await planPrune(root, later())).toMatchObject({ entries: [], problems: [] });
  });

  it('finds nothing where there is no store', async () => {
    expect(await planPrune(join(folder(), 'gone'), later())).toMatchObject({ entries: [], kept: [], problems: [] });
  });
});

describe('executePrune', () => {
  it('removes what the plan lists and nothing else', async () => {
    const root = folder();
    await artifact(root);
    const kept = await treeOf(root);
    await writeTree(root, {
      'artifacts/.staging/a/buckets/L64/manifest.json': '{}',
      [`${PLACE}.failed-${DEAD}/x`]: '',
      [`${PLACE}.pruning-${DEAD}-0123abcd/x`]: '',
      'verified/artifacts/x.json': '{}',
      [`${OLD_REVISION}/${MANIFEST}`]: '{}',
      'artifacts/quarantine/q/x': '',
    });
    const outcomes = await prune(root, later({ superseded: true, quarantined: true }));
    expect(outcomes.map(([, outcome]) => outcome)).toEqual(Array(6).fill('removed'));
    const empty = ['artifacts/.staging/', 'artifacts/quarantine/', `${dirname(OLD_REVISION)}/`];
    expect((await treeOf(root)).filter((path) => !empty.includes(path) && !path.startsWith('verified/'))).toEqual(kept);
  });

  // R07: a plan is only a list of places to look at.
  it('keeps what came to life since the plan was made', async () => {
    const root = folder();
    const marker = 'artifacts/.staging/a/BUILDING.json';
    await writeTree(root, { [marker]: `{"pid": ${DEAD}}` });
    const paths = (await planPrune(root, later())).entries.map(({ path }) => path);
    await writeTree(root, { [marker]: `{"pid": ${ALIVE}}` });
    expect((await executePrune(root, paths, later()))[0]?.outcome).toBe('kept');
    expect(await treeOf(stagingFolder(root))).toEqual(['a/', 'a/BUILDING.json']);
  });

  it('puts back what came to life between the look and the claim', async () => {
    const root = folder();
    const marker = 'artifacts/.staging/a/BUILDING.json';
    await writeTree(root, { [marker]: `{"pid": ${DEAD}}` });
    let first = true;
    const rename_ = async (from: string, to: string): Promise<void> => {
      if (first) await writeTree(root, { [marker]: `{"pid": ${ALIVE}}` });
      first = false;
      await rename(from, to);
    };
    expect(await prune(root, later(), { rename: rename_ })).toEqual([['artifacts/.staging/a', 'kept']]);
    expect(await treeOf(stagingFolder(root))).toEqual(['a/', 'a/BUILDING.json']);
  });

  it('leaves a claimed folder where it is when its place was taken meanwhile', async () => {
    const root = folder();
    const marker = 'artifacts/.staging/a/BUILDING.json';
    await writeTree(root, { [marker]: `{"pid": ${DEAD}}` });
    let first = true;
    const rename_ = async (from: string, to: string): Promise<void> => {
      if (first) await writeTree(root, { [marker]: `{"pid": ${ALIVE}}` });
      await rename(from, to);
      if (first) await writeTree(root, { [marker]: `{"pid": ${ALIVE}, "new": true}` });
      first = false;
    };
    expect(await prune(root, later(), { rename: rename_ })).toEqual([['artifacts/.staging/a', 'stays']]);
    expect(await readFile(join(root, marker), 'utf8')).toContain('new');
    expect(await readdir(stagingFolder(root))).toHaveLength(2);
  });

  it('says so when an entry is gone, and removes the others', async () => {
    const root = folder();
    await writeTree(root, { [`${PLACE}.failed-${DEAD}/x`]: '', 'artifacts/.staging/a/x': '' });
    const paths = (await planPrune(root, later())).entries.map(({ path }) => path);
    await rm(join(root, 'artifacts/.staging/a'), { recursive: true });
    expect((await executePrune(root, paths, later())).map(({ outcome }) => outcome)).toEqual(['gone', 'removed']);
  });

  // R09: whatever a plan says.
  it('refuses every path that is not plain and below the root, and what no rule allows', async () => {
    const [root, outside] = [folder(), folder()];
    await artifact(root);
    await writeTree(root, { [`${PLACE}.old-${DEAD}/${MANIFEST}`]: '{}', 'artifacts/rejected/x.json': '{}' });
    await writeTree(outside, { 'a/BUILDING.json': `{"pid": ${DEAD}}` });
    await mkdir(stagingFolder(root), { recursive: true });
    await symlink(join(outside, 'a'), join(stagingFolder(root), 'link'));
    await symlink(outside, join(artifactsFolder(root), 'linked'));
    const before = await treeOf(root);
    const unsafe = [
      '',
      '.',
      '..',
      '/',
      outside,
      root,
      `${root}/artifacts/.staging/a`,
      '../x',
      'artifacts/../../x',
      'artifacts/.staging/../../../x',
      'artifacts/.staging/',
      'artifacts//.staging',
      './artifacts/.staging/a',
      'artifacts\\.staging',
      'artifacts/.staging/link',
      'artifacts/linked/a/BUILDING.json',
      'a\0b',
    ];
    const inUse = ['artifacts', 'artifacts/.staging', PLACE, `${PLACE}.old-${DEAD}`, 'artifacts/rejected/x.json'];
    const how = later({ superseded: true, quarantined: true });
    const refused = await executePrune(root, unsafe, how);
    expect(refused.filter(({ problem }) => problem?.code !== 'PATH_UNSAFE').map(({ path }) => path)).toEqual([]);
    const kept = await executePrune(root, inUse, how);
    expect(kept.map(({ outcome }) => outcome)).toEqual(inUse.map(() => 'kept'));
    expect(await treeOf(root)).toEqual(before);
    expect(await readdir(join(outside, 'a'))).toEqual(['BUILDING.json']);
  });

  it('removes links in an entry, not what they lead to', async () => {
    const [root, outside] = [folder(), folder()];
    await writeTree(outside, { 'a/x': 'x' });
    await writeTree(root, { 'artifacts/.staging/a/x': '' });
    await symlink(outside, join(stagingFolder(root), 'a', 'link'));
    await utimes(join(stagingFolder(root), 'a'), 1, 1);
    expect(await prune(root)).toEqual([['artifacts/.staging/a', 'removed']]);
    expect(await readFile(join(outside, 'a/x'), 'utf8')).toBe('x');
  });

  it('leaves the bytes that another artifact shares', async () => {
    const root = folder();
    await artifact(root);
    const weights = join(artifactFolder(root, KEY), COMPILED, 'weights/weight.bin');
    await mkdir(join(root, OLD_REVISION), { recursive: true });
    await link(weights, join(root, OLD_REVISION, 'weight.bin'));
    await prune(root, later({ superseded: true }));
    expect([await readFile(weights, 'utf8'), (await lstat(weights)).nlink]).toEqual(['weights', 1]);
  });

  it.each(['rename', 'unlink', 'remove'] as const)('reports that %s failed, and goes on', async (step) => {
    const root = folder();
    await writeTree(root, { 'artifacts/.staging/a/x': '', 'artifacts/.staging/b/x': '' });
    const real: (...paths: string[]) => Promise<void> = storeSteps()[step] as never;
    const fail = async (...paths: string[]): Promise<void> => {
      if (paths[0]!.includes('.staging/a')) throw Object.assign(new Error('no'), { code: 'EIO' });
      await real(...paths);
    };
    const outcomes = await prune(root, later(), { [step]: fail });
    expect(outcomes).toEqual([
      ['artifacts/.staging/a', 'failed'],
      ['artifacts/.staging/b', 'removed'],
    ]);
  });

  it('lets one of two prunes remove an entry', async () => {
    const root = folder();
    await writeTree(root, { 'artifacts/.staging/a/x': '' });
    const paths = (await planPrune(root, later())).entries.map(({ path }) => path);
    const both = await Promise.all([executePrune(root, paths, later()), executePrune(root, paths, later())]);
    expect(
      both
        .flat()
        .map(({ outcome }) => outcome)
        .sort(),
    ).toEqual(['gone', 'removed']);
    expect(await readdir(stagingFolder(root))).toEqual([]);
  });
});
