import { appendFile, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { commitArtifact } from '../../registry/commit.js';
import { isWhole } from '../../registry/generation.js';
import { locateArtifact } from '../../registry/locate.js';
import { artifactFolder, COMPILED, MANIFEST, QUARANTINED, quarantineFolder } from '../../registry/paths.js';
import { findProblem, moveToQuarantine } from '../../registry/quarantine.js';
import {
  dropQuarantined,
  listQuarantine,
  quarantinedKey,
  restoreQuarantined,
} from '../../registry/quarantine-entries.js';
import { codeOf, treeOf, workspace, writeTree } from '../workspace.js';
import { FILES, KEY, writeArtifact } from './artifact.js';

const folder = workspace();
const NOW = new Date('2026-01-02T03:04:05.678Z');
const now = (): Date => NOW;
const NAME = `laya-tiny__4defbfb4419a__bc1s-masked-L64-B1-20260102T030405Z-${process.pid}`;

async function registered(build = 'one'): Promise<string> {
  const root = folder();
  await writeArtifact(artifactFolder(root, KEY), { ...FILES, 'model.mil': build });
  return root;
}

async function damage(root: string): Promise<void> {
  await appendFile(join(artifactFolder(root, KEY), COMPILED, 'weights/weight.bin'), 'x');
}

const move = (root: string, change = {}) =>
  moveToQuarantine(root, KEY, { reason: 'it is damaged', now: NOW, ...change });
const entries = (root: string): Promise<string[]> => readdir(quarantineFolder(root)).catch(() => []);

describe('moveToQuarantine', () => {
  it('moves an artifact that is not whole, with the reason beside it', async () => {
    const root = await registered();
    await damage(root);
    expect(await move(root)).toBe(NAME);
    expect(await locateArtifact(root, KEY)).toBeUndefined();
    const entry = join(quarantineFolder(root), NAME);
    expect(await readdir(entry)).toEqual([QUARANTINED, MANIFEST, COMPILED].sort());
    expect(JSON.parse(await readFile(join(entry, QUARANTINED), 'utf8'))).toEqual({
      reason: 'it is damaged',
      at: '20260102T030405Z',
      from: artifactFolder(root, KEY),
    });
  });

  // R20: the check that called it damaged saw the moment of a replacement.
  it('puts back an artifact that turns out to be whole', async () => {
    const root = await registered();
    expect(await move(root)).toBeUndefined();
    expect(await isWhole(KEY, artifactFolder(root, KEY))).toBe(true);
    expect(await entries(root)).toEqual([]);
  });

  it('keeps it when another one was registered in the instant between', async () => {
    const root = await registered();
    const other = folder();
    await writeArtifact(other, { ...FILES, 'model.mil': 'two' });
    let moved = false;
    const steps = {
      rename: async (from: string, to: string): Promise<void> => {
        await rename(from, to);
        if (!moved) await rename(other, artifactFolder(root, KEY));
        moved = true;
      },
    };
    expect(await move(root, { steps })).toBe(NAME);
    expect(await readFile(join(artifactFolder(root, KEY), COMPILED, 'model.mil'), 'utf8')).toBe('two');
    expect((await listQuarantine(root))[0]?.record?.reason).toMatch(/^whole, and replaced/);
  });

  it('moves a whole one only when told so', async () => {
    const root = await registered();
    expect(await move(root, { evenWhole: true, reason: 'not trusted' })).toBe(NAME);
    expect(await entries(root)).toEqual([NAME]);
  });

  it('gives two entries of one second two names', async () => {
    const root = await registered();
    await move(root, { evenWhole: true });
    await writeArtifact(artifactFolder(root, KEY));
    expect(await move(root, { evenWhole: true })).toBe(NAME.replace('030405Z', '030406Z'));
  });

  it('has nothing to move where nothing stands', async () => {
    expect(await move(folder())).toBeUndefined();
  });

  it.each(['alive', 'unreadable'])('leaves an install alone whose process is %s', async (state) => {
    const root = folder();
    const marker = state === 'alive' ? `{"pid": ${process.ppid}}` : '{';
    await writeTree(artifactFolder(root, KEY), { 'PENDING.json': marker, 'manifest.pending.json': '{}' });
    expect(await codeOf(() => move(root))).toBe('TARGET_OCCUPIED');
    expect(await treeOf(artifactFolder(root, KEY))).toEqual(['PENDING.json', 'manifest.pending.json']);
  });
});

describe('findProblem', () => {
  it('finds none in a whole artifact', async () => {
    expect(await findProblem(await registered(), KEY)).toBeUndefined();
  });

  it.each([
    ['TREE_MISMATCH', damage],
    ['TREE_INCOMPLETE', (root: string) => rm(join(artifactFolder(root, KEY), MANIFEST))],
    ['TREE_INCOMPLETE', (root: string) => rm(join(artifactFolder(root, KEY), COMPILED), { recursive: true })],
    ['MANIFEST_UNREADABLE', (root: string) => writeFile(join(artifactFolder(root, KEY), MANIFEST), '')],
  ])('gives %s', async (code, spoil) => {
    const root = await registered();
    await spoil(root);
    expect((await findProblem(root, KEY))?.code).toBe(code);
  });
});

describe('commitArtifact over something that is not whole', () => {
  const spoilt: [string, (target: string) => Promise<unknown>][] = [
    // R01, R12
    ['a damaged artifact', (target) => writeArtifact(target).then(() => writeFile(join(target, COMPILED, 'x'), ''))],
    [
      'an artifact with an empty manifest',
      (target) => writeArtifact(target).then(() => writeFile(join(target, MANIFEST), '')),
    ],
    ['half a download', (target) => writeTree(target, { [`${COMPILED}/weights/weight.bin.partial`]: 'x' })],
    ['a manifest alone', (target) => writeTree(target, { [MANIFEST]: '{}' })],
    [
      'an artifact of another bucket',
      (target) => writeArtifact(target, FILES, (manifest) => Object.assign(manifest.artifact, { length: 96 })),
    ],
    [
      'an install that died',
      (target) => writeTree(target, { 'PENDING.json': '{"pid": 4194305}', 'manifest.pending.json': '{}' }),
    ],
  ];

  it.each(spoilt)('moves %s to quarantine and registers', async (_name, spoil) => {
    const root = folder();
    await spoil(artifactFolder(root, KEY));
    const staged = join(root, 'artifacts/.staging/one/buckets/L64');
    await writeArtifact(staged);
    expect(await commitArtifact(root, KEY, staged, { replace: false, now })).toBe('registered');
    expect(await isWhole(KEY, artifactFolder(root, KEY))).toBe(true);
    expect(await entries(root)).toEqual([NAME]);
  });

  it.each([false, true])('does not touch the install of a process at work, replace %s', async (replace) => {
    const root = folder();
    await writeTree(artifactFolder(root, KEY), { 'PENDING.json': `{"pid": ${process.ppid}}` });
    const staged = join(root, 'artifacts/.staging/one/buckets/L64');
    await writeArtifact(staged);
    expect(await codeOf(() => commitArtifact(root, KEY, staged, { replace, now }))).toBe('TARGET_OCCUPIED');
    expect(await treeOf(artifactFolder(root, KEY))).toEqual(['PENDING.json']);
    expect(await isWhole(KEY, staged)).toBe(true);
  });
});

describe('restoreQuarantined', () => {
  const restore = (root: string, name = NAME) => restoreQuarantined(root, name, quarantinedKey(root, name), { now });

  it('registers what passes every check, without its record', async () => {
    const root = await registered();
    await move(root, { evenWhole: true });
    expect(await restore(root)).toBe(artifactFolder(root, KEY));
    expect(await readdir(artifactFolder(root, KEY))).toEqual([MANIFEST, COMPILED]);
    expect(await entries(root)).toEqual([]);
  });

  it('refuses what is not whole, and keeps it', async () => {
    const root = await registered();
    await damage(root);
    await move(root);
    const before = await treeOf(root);
    expect(await codeOf(() => restore(root))).toBe('TREE_MISMATCH');
    expect(await treeOf(root)).toEqual(before);
  });

  it('does not take the place of a whole artifact', async () => {
    const root = await registered();
    await move(root, { evenWhole: true });
    await writeArtifact(artifactFolder(root, KEY), { ...FILES, 'model.mil': 'two' });
    const before = await treeOf(root);
    expect(await codeOf(() => restore(root))).toBe('TARGET_OCCUPIED');
    expect(await treeOf(root)).toEqual(before);
  });

  it('takes the place of one that is not', async () => {
    const root = await registered();
    await move(root, { evenWhole: true });
    await writeArtifact(artifactFolder(root, KEY));
    await damage(root);
    await restoreQuarantined(root, NAME, KEY, { now: () => new Date(NOW.getTime() + 5000) });
    expect(await isWhole(KEY, artifactFolder(root, KEY))).toBe(true);
    expect(await entries(root)).toHaveLength(1);
  });

  it('goes where the manifest belongs, wherever the record says it came from', async () => {
    const root = await registered();
    await move(root, { evenWhole: true });
    const record = { reason: 'x', at: '20260102T030405Z', from: join(root, 'elsewhere') };
    await writeFile(join(quarantineFolder(root), NAME, QUARANTINED), JSON.stringify(record));
    expect(await restore(root)).toBe(artifactFolder(root, KEY));
    expect(await treeOf(root)).not.toContain('elsewhere/');
  });

  it('refuses an artifact that this release has no place for', async () => {
    const root = folder();
    const change = { revision: 'a'.repeat(40) };
    await writeArtifact(join(quarantineFolder(root), 'x'), FILES, (manifest) => Object.assign(manifest.source, change));
    expect(await codeOf(() => restore(root, 'x'))).toBe('SOURCE_MISMATCH');
  });

  // R09
  it.each(['', '.', '..', '../artifacts', 'a/b', '/etc', 'gone', 'a\\b', 'link', 'a file'])(
    'refuses the name %j',
    async (name) => {
      const root = await registered();
      await writeTree(quarantineFolder(root), { 'a file': '' });
      await symlink(artifactFolder(root, KEY), join(quarantineFolder(root), 'link'));
      const before = await treeOf(root);
      expect(await codeOf(() => restore(root, name))).toBe('NOT_QUARANTINED');
      expect(await codeOf(() => dropQuarantined(root, name))).toBe('NOT_QUARANTINED');
      expect(await treeOf(root)).toEqual(before);
    },
  );
});

describe('listQuarantine', () => {
  it('spoils only the row of what can not be read', async () => {
    const root = await registered();
    await move(root, { evenWhole: true });
    await writeTree(quarantineFolder(root), { 'a/QUARANTINED.json': '{"reason": 1}', 'b/x': '', 'a file': 'x' });
    await symlink(join(root, 'gone'), join(quarantineFolder(root), 'dangling'));
    const rows = (await listQuarantine(root)).map(({ name, record, problem }) => [
      name,
      record?.reason ?? problem?.code,
    ]);
    expect(rows).toEqual([
      ['a', 'RECORD_INVALID'],
      ['a file', 'UNREADABLE'],
      ['b', 'NO_RECORD'],
      ['dangling', 'NO_RECORD'],
      [NAME, 'it is damaged'],
    ]);
  });

  it('is empty where there is no quarantine', async () => {
    expect(await listQuarantine(folder())).toEqual([]);
  });
});

describe('dropQuarantined', () => {
  it('removes an entry and what is below it, not what links lead to', async () => {
    const root = await registered();
    await move(root, { evenWhole: true });
    await mkdir(join(root, 'outside'));
    await writeFile(join(root, 'outside/file'), 'x');
    await symlink(join(root, 'outside'), join(quarantineFolder(root), NAME, 'link'));
    await dropQuarantined(root, NAME);
    expect(await entries(root)).toEqual([]);
    expect(await readFile(join(root, 'outside/file'), 'utf8')).toBe('x');
  });
});
