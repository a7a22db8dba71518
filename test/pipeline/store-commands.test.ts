import { appendFile, chmod, cp, mkdir, readdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { findModel } from '../../registry/models.js';
import { artifactFolder, COMPILED, MANIFEST } from '../../registry/paths.js';
import { filesBelow, totalBytes, uniqueBytes } from '../../registry/usage.js';
import { registerLayaTiny } from '../registered.js';
import { keptFolder, treeOf, workspace, writeTree } from '../workspace.js';
import { ANYBODY, cli } from './cli.js';

const folder = workspace();
const store = keptFolder();
const model = findModel('laya-tiny');
const place = (root: string, bucket = 64): string => artifactFolder(root, { model, bucket });

beforeAll(() => registerLayaTiny(store(), [64, 96]), 240_000);

const run = (root: string, ...args: string[]) => cli(args, { LAYA_APPLE_CACHE: root });
const json = async (root: string, ...args: string[]) => JSON.parse((await run(root, ...args, '--json')).stdout);

/** A root of the test's own with the artifact of L64. */
async function copied(): Promise<string> {
  const root = folder();
  await cp(place(store()), place(root), { recursive: true });
  return root;
}

async function damage(root: string): Promise<void> {
  await appendFile(join(place(root), COMPILED, 'weights/weight.bin'), 'x');
}

/** Everything that may lie about in a store, and can't be what it should. */
async function spoil(root: string): Promise<void> {
  await writeTree(root, {
    [`artifacts/laya-tiny/4defbfb4419a/bc1s-masked-L96-B1/${MANIFEST}`]: '{',
    [`artifacts/laya-tiny/4defbfb4419a/bc1s-masked-L96-B1/${COMPILED}/x`]: '',
    [`artifacts/laya-tiny/4defbfb4419a/bc1s-masked-L128-B1/${MANIFEST}`]: '\u0000'.repeat(64),
    'artifacts/laya/c5d78730f349/bc1s-masked-L64-B1/x': '',
    'artifacts/laya/c5d78730f349/stray': '',
    'artifacts/laya/stray': '',
    'artifacts/stray': '',
    'artifacts/\u001b[31mred/000000000000/bc1s-masked-L64-B1/manifest.json': '{}',
    'artifacts/.staging/stray': 'x',
    'artifacts/.staging/work/BUILDING.json': '[',
    'artifacts/rejected/stray': 'x',
    'artifacts/rejected/half.json': '{"status": "rejected"',
    'artifacts/quarantine/stray': 'x',
    'artifacts/quarantine/bare/x': '',
    'artifacts/.locks/stray': 'x',
    'verified/artifacts/stray.json': '[',
    'verified/checkpoints/stray.json': '[',
    'verified/portable/stray': '',
    stray: '',
  });
  for (const path of ['', '/laya', '/laya/c5d78730f349', '/.staging', '/rejected', '/quarantine'])
    await symlink(join(root, 'gone'), join(root, `artifacts${path}`, 'dangling'));
  for (const path of ['closed', 'laya/closed', 'laya-tiny/4defbfb4419a/bc1s-masked-L256-B1', '.staging/closed']) {
    await mkdir(join(root, 'artifacts', path), { recursive: true });
    await chmod(join(root, 'artifacts', path), 0);
  }
}

describe('a store with things in it that should not be there', () => {
  const commands: [string[], number, RegExp][] = [
    [['list'], 0, /laya-tiny +64 +validated/],
    [['info', 'laya-tiny'], 0, /"status": "validated"/],
    [['verify', 'laya-tiny', '--length', '64'], 0, /bc1s-masked-L64-B1 +ok/],
    [['verify'], 1, /bc1s-masked-L64-B1\n +result ok/],
    [
      ['verify', '--all'],
      1,
      /bc1s-masked-L64-B1\n +result ok[\s\S]*artifacts\/rejected\/half.json\n +result JSON_SYNTAX/,
    ],
    [['provenance', 'laya-tiny', '--length', '64'], 0, /laya-tiny L64/],
    [['quarantine', 'list'], 0, /bare/],
    [['prune'], 1, /verified\/checkpoints\/stray.json +unused-stamp[\s\S]*closed: can't be looked at/],
  ];

  it('spoils only their own rows, in every command', async () => {
    const root = await copied();
    await chmod(root, 0o755);
    await spoil(root);
    for (const [args, code, seen] of commands) {
      const found = await cli(args, { LAYA_APPLE_CACHE: root }, '', ANYBODY);
      expect({ args, ...found }).toMatchObject({ args, code, stdout: expect.stringMatching(seen) });
      expect(found.stderr).not.toMatch(/UNEXPECTED|\n\s+at /);
      expect(found.stdout).not.toContain('\u001b');
    }
  });

  it('names each of them in list and verify', async () => {
    const root = await copied();
    await chmod(root, 0o755);
    await spoil(root);
    const { stdout } = await cli(['list', '--json'], { LAYA_APPLE_CACHE: root }, '', ANYBODY);
    const rows = JSON.parse(stdout).map(({ path, problem }: { path: string; problem: { code: string } | null }) => [
      path,
      problem?.code ?? 'right',
    ]);
    expect(Object.fromEntries(rows)).toEqual({
      'laya-tiny/4defbfb4419a/bc1s-masked-L64-B1': 'right',
      'laya-tiny/4defbfb4419a/bc1s-masked-L96-B1': 'MANIFEST_UNREADABLE',
      'laya-tiny/4defbfb4419a/bc1s-masked-L128-B1': 'TREE_INCOMPLETE',
      'laya-tiny/4defbfb4419a/bc1s-masked-L256-B1': 'MANIFEST_UNREADABLE',
      'laya/c5d78730f349/bc1s-masked-L64-B1': 'TREE_INCOMPLETE',
      'laya/closed': 'UNREADABLE',
      closed: 'UNREADABLE',
      '\u001b[31mred/000000000000/bc1s-masked-L64-B1': 'NOT_PINNED',
    });
  });
});

describe('list', () => {
  // B02: between the renames of a replacement that was killed.
  it('shows the artifact that a dead replacement left beside its place', async () => {
    const root = await copied();
    await cp(place(root), `${place(root)}.old-4194305`, { recursive: true });
    await writeTree(root, { 'x/y': '' });
    const { rename } = await import('node:fs/promises');
    await rename(place(root), join(root, 'x', 'gone'));
    const [row] = await json(root, 'list');
    expect(row).toMatchObject({
      path: expect.stringMatching(/L64-B1$/),
      folder: `${place(root)}.old-4194305`,
      problem: null,
    });
    expect((await run(root, 'verify')).code).toBe(0);
  });

  it('shows what is known of an artifact that is not pinned', async () => {
    const root = await copied();
    const manifest = JSON.parse(await readFile(join(place(root), MANIFEST), 'utf8'));
    manifest.source.revision = `0123456789ab${manifest.source.revision.slice(12)}`;
    await cp(place(root), place(root).replace('4defbfb4419a', '0123456789ab'), { recursive: true });
    await writeFile(join(place(root).replace('4defbfb4419a', '0123456789ab'), MANIFEST), JSON.stringify(manifest));
    const [row] = await json(root, 'list');
    expect(row).toMatchObject({ problem: { code: 'NOT_PINNED' }, source: { revision: manifest.source.revision } });
  });
});

describe('verify', () => {
  it('tells the bytes with shared weights counted once', async () => {
    const rows = await json(store(), 'verify');
    const files = filesBelow(join(store(), 'artifacts/laya-tiny'));
    expect(rows).toHaveLength(2);
    expect(uniqueBytes(files)).toBeLessThan(0.6 * totalBytes(files));
    expect((await run(store(), 'verify')).stdout).toMatch(/2 of 2 artifacts are right, 4\.\d MB \(2\.\d MB on disk\)/);
  });

  it('fails for a changed byte, says which, and changes nothing', async () => {
    const root = await copied();
    await damage(root);
    const before = await treeOf(root);
    const { code, stdout } = await run(root, 'verify');
    expect([code, stdout]).toEqual([1, expect.stringMatching(/L64-B1 +TREE_MISMATCH/)]);
    expect(await treeOf(root)).toEqual(before);
  });

  it('runs the gates again when asked', async () => {
    const { code, stdout } = await run(store(), 'verify', 'laya-tiny', '--length', '64', '--deep');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/L64-B1 +ok/)]);
  });

  it('finds evidence that the gates of this machine refuse', async () => {
    const root = await copied();
    // Other weights with hashes that fit: only the gates can tell.
    await writeFile(join(root, 'patch.mjs'), PATCH);
    const { spawnSync } = await import('node:child_process');
    expect(spawnSync(process.execPath, [join(root, 'patch.mjs'), place(root)]).status).toBe(0);
    expect((await run(root, 'verify')).code).toBe(0);
    const { code, stdout } = await run(root, 'verify', '--deep');
    expect([code, stdout]).toEqual([1, expect.stringMatching(/PARITY_FAILED/)]);
  }, 120_000);
});

/** Turns the signs of the weights around and makes the manifest fit; a script, so that dist is what hashes. */
const PATCH = `
import { readFileSync, writeFileSync } from 'node:fs';
import { hashTree } from '${new URL('../../dist/registry/tree.js', import.meta.url)}';
const folder = process.argv[2];
const path = folder + '/model.mlmodelc/weights/weight.bin';
const bytes = readFileSync(path);
for (let block = 1 << 20; block < 3 << 19; block += 64)
  if (bytes.readUInt32LE(block) !== 0xdeadbeef) for (let at = block + 1; at < block + 64; at += 2) bytes[at] ^= 0x80;
writeFileSync(path, bytes);
const manifest = JSON.parse(readFileSync(folder + '/manifest.json', 'utf8'));
const { v1, v2, files } = await hashTree(folder + '/model.mlmodelc');
Object.assign(manifest.integrity, { artifact_sha256: v1, tree_v2: v2, files });
manifest.evidence.artifact_sha256 = v1;
writeFileSync(folder + '/manifest.json', JSON.stringify(manifest, null, 1) + '\\n');
`;

describe('quarantine', () => {
  it('takes a damaged artifact out of use, and the next build heals', async () => {
    const root = await copied();
    await damage(root);
    const [{ name }] = await json(root, 'quarantine', 'add', 'laya-tiny', '--length', '64');
    expect(name).toMatch(/^laya-tiny__4defbfb4419a__bc1s-masked-L64-B1-\d{8}T\d{6}Z-\d+$/);
    expect((await run(root, 'quarantine', 'list')).stdout).toContain(name);
    expect((await run(root, 'quarantine', 'restore', name)).stderr).toContain('TREE_MISMATCH');
    await registerLayaTiny(root, [64]);
    expect((await run(root, 'verify')).code).toBe(0);
    expect((await run(root, 'quarantine', 'drop', name)).code).toBe(0);
    expect(await json(root, 'quarantine', 'list')).toEqual([]);
  }, 120_000);

  it('asks for a reason before it moves a whole artifact, and gives it back', async () => {
    const root = await copied();
    expect((await run(root, 'quarantine', 'add', 'laya-tiny', '--length', '64')).stderr).toContain('ARTIFACT_WHOLE');
    const reason = ['--reason', 'not trusted \u001b[31m'];
    const [{ name }] = await json(root, 'quarantine', 'add', 'laya-tiny', '--length', '64', ...reason);
    expect((await run(root, 'quarantine', 'list')).stdout).not.toContain('\u001b');
    expect((await run(root, 'quarantine', 'restore', name)).code).toBe(0);
    expect((await run(root, 'verify')).code).toBe(0);
  });

  it.each([
    [['restore', '../laya-tiny'], 1, 'NOT_QUARANTINED'],
    [['drop', 'gone'], 1, 'NOT_QUARANTINED'],
    [['add', 'laya-tiny', '--length', '65'], 2, 'USAGE'],
    [['add', 'laya-tiny'], 2, '--length'],
    [['list', 'x'], 2, 'too many arguments'],
  ])('refuses %j', async (args, code, named) => {
    const { code: found, stderr } = await run(await copied(), 'quarantine', ...args);
    expect([found, stderr]).toEqual([code, expect.stringContaining(named)]);
  });
});

describe('a build over a damaged artifact', () => {
  it('keeps it in quarantine and registers', async () => {
    const root = await copied();
    await damage(root);
    await registerLayaTiny(root, [64]);
    expect((await run(root, 'verify')).code).toBe(0);
    expect((await json(root, 'quarantine', 'list'))[0].reason).toMatch(/not the one its manifest describes/);
  }, 120_000);
});

describe('prune', () => {
  it('lists, and removes only with --yes', async () => {
    const root = await copied();
    const kept = await treeOf(root);
    await writeTree(root, { 'artifacts/.staging/old/x': '12345' });
    await utimes(join(root, 'artifacts/.staging/old'), 1_000_000, 1_000_000);
    const plan = await run(root, 'prune');
    expect([plan.code, plan.stdout]).toEqual([
      0,
      expect.stringMatching(/\.staging\/old +abandoned-staging +5 B +\d+ d/),
    ]);
    expect(await json(root, 'prune')).toMatchObject({
      removed: false,
      bytes: 5,
      freed_bytes: 5,
      entries: [{ path: 'artifacts/.staging/old', reason: 'abandoned-staging', bytes: 5, outcome: null }],
    });
    expect(await readdir(join(root, 'artifacts/.staging'))).toEqual(['old']);
    expect(await json(root, 'prune', '--yes')).toMatchObject({ removed: true, entries: [{ outcome: 'removed' }] });
    expect(await treeOf(root)).toEqual(['artifacts/.staging/', ...kept].sort());
    expect((await run(root, 'prune')).stdout).toContain('nothing to prune');
  });
});

describe('warm', () => {
  it('leaves stamps that the next load uses, for one model and for all', async () => {
    const root = await copied();
    const first = await json(root, 'warm');
    expect(first).toMatchObject([{ model: 'laya-tiny', bucket: 64, stamp: 'written', problem: null }]);
    expect(await json(root, 'warm', 'laya-tiny', '--length', '64')).toMatchObject([{ stamp: 'used' }]);
  });

  it('says what can not be loaded', async () => {
    const root = await copied();
    await damage(root);
    const { code, stdout } = await run(root, 'warm');
    expect([code, stdout]).toEqual([1, expect.stringContaining('TREE_MISMATCH')]);
    expect((await run(root, 'warm', 'laya-tiny')).stderr).toContain('TREE_MISMATCH');
    expect((await run(folder(), 'warm')).stderr).toContain('ARTIFACT_MISSING');
  });
});

describe('provenance', () => {
  it("tells a model's chain from source to figures", async () => {
    const { stdout } = await run(store(), 'provenance', 'laya-tiny', '--length', '96');
    for (const word of [
      'laya-artifacts/laya-tiny',
      'bbc18de4aa54',
      'mlmodelc-export 0.1.0',
      'onnxruntime',
      'rows',
      'coremltools 9.0',
    ])
      expect(stdout).toContain(word);
    expect(stdout).toMatch(/imported +no, made here/);
    const records = await json(store(), 'provenance', 'laya-tiny');
    expect(records.map(({ bucket }: { bucket: number }) => bucket)).toEqual([64, 96]);
    expect(records[0]).toMatchObject({ compiler: { kind: 'portable' }, parity: { passed: true }, imported: null });
  });

  it('reads the manifest of the Python runtime, which says less', async () => {
    const root = await copied();
    const path = join(place(root), MANIFEST);
    const { evidence, compiler, checkpoint, toolchain, conversion, ...bare } = JSON.parse(await readFile(path, 'utf8'));
    await writeFile(path, JSON.stringify({ ...bare, conversion: { laya_apple_version: '1.7.0' } }));
    const { code, stdout } = await run(root, 'provenance', 'laya-tiny');
    expect([code, stdout]).toEqual([0, expect.stringContaining('laya-apple 1.7.0')]);
  });

  it('names what is not registered', async () => {
    expect((await run(store(), 'provenance', 'laya-tiny', '--length', '128')).stderr).toContain('ARTIFACT_MISSING');
    expect((await run(store(), 'provenance', 'laya')).stderr).toContain('ARTIFACT_MISSING');
  });
});

describe('reproduce', () => {
  it('gives the same bytes again and leaves nothing', async () => {
    const before = await treeOf(join(store(), 'artifacts/laya-tiny'));
    const report = await json(store(), 'reproduce', 'laya-tiny', '--length', '96');
    expect(report).toMatchObject({ same: true, model: 'laya-tiny', bucket: 96 });
    expect(report.files.map(({ verdict }: { verdict: string }) => verdict)).toEqual(report.files.map(() => 'same'));
    expect(await treeOf(join(store(), 'artifacts/laya-tiny'))).toEqual(before);
    expect(await readdir(join(store(), 'artifacts/.staging'))).toEqual([]);
  }, 120_000);

  it('tells which files differ, with exit code 1', async () => {
    const root = await copied();
    await writeFile(join(root, 'patch.mjs'), PATCH);
    const { spawnSync } = await import('node:child_process');
    spawnSync(process.execPath, [join(root, 'patch.mjs'), place(root)]);
    const { code, stdout } = await run(root, 'reproduce', 'laya-tiny', '--length', '64');
    expect([code, stdout]).toEqual([1, expect.stringMatching(/weights\/weight\.bin +different/)]);
    expect(stdout).toMatch(/model\.mil +same/);
  }, 120_000);

  it.each([
    [['--length', '64,96'], 2, 'USAGE'],
    [['--length', '256'], 1, 'ARTIFACT_MISSING'],
  ])('refuses %j', async (args, code, named) => {
    const { code: found, stderr } = await run(store(), 'reproduce', 'laya-tiny', ...args);
    expect([found, stderr]).toEqual([code, expect.stringContaining(named)]);
  });
});
