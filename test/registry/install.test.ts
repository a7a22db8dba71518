import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { commitArtifact } from '../../registry/commit.js';
import { recordText } from '../../registry/durable.js';
import { installArtifact } from '../../registry/install.js';
import { locateArtifact } from '../../registry/locate.js';
import { artifactFolder, COMPILED, MANIFEST } from '../../registry/paths.js';
import { readArtifact, verifyTree } from '../../registry/read.js';
import { type StoreSteps, storeSteps } from '../../registry/steps.js';
import { codeOf, treeOf, workspace, writeTree } from '../workspace.js';
import { FILES, KEY, writeArtifact } from './artifact.js';

const folder = workspace();
const now = (): Date => new Date('2026-01-02T03:04:05Z');

/** Which build is served now, told by a file of its model; the artifact must be whole. */
async function served(root: string): Promise<string | undefined> {
  const found = await locateArtifact(root, KEY);
  if (found === undefined) return undefined;
  await verifyTree(await readArtifact(KEY, found));
  return readFile(join(found, COMPILED, 'model.mil'), 'utf8');
}

async function staged(root: string, build: string): Promise<{ path: string; manifest: string }> {
  const path = join(root, 'artifacts', '.staging', 'import-x', 'buckets', build);
  const manifest = await writeArtifact(path, { ...FILES, 'model.mil': build });
  return { path, manifest: recordText({ ...manifest, imported: { from: `${build}.tar.gz` } }) };
}

/** Installs a build; `gates` runs where the gates do. */
async function install(
  root: string,
  build: string,
  replace: boolean,
  gates: (model: string) => Promise<void> = async () => undefined,
  steps: Partial<StoreSteps> = {},
) {
  const { path, manifest } = await staged(root, build);
  const prove = async (model: string): Promise<string> => {
    await gates(model);
    return manifest;
  };
  return installArtifact(root, KEY, path, prove, { replace, now, steps });
}

const registered = async (root: string, build: string) =>
  commitArtifact(root, KEY, (await staged(root, build)).path, { replace: false });
const siblings = async (root: string) =>
  (await treeOf(dirname(artifactFolder(root, KEY)))).filter((path) => /^[^/]+\/?$/.test(path));
const NAME = 'bc1s-masked-L64-B1/';

describe('installArtifact', () => {
  it('runs the gates at the registered path, where no reader sees an artifact until they have passed', async () => {
    const root = folder();
    const seen: unknown[] = [];
    const outcome = await install(root, 'one', false, async (model) => {
      seen.push(
        model,
        await served(root),
        (await treeOf(artifactFolder(root, KEY))).filter((path) => !path.includes('/')),
      );
    });
    expect(outcome).toBe('registered');
    expect(seen).toEqual([
      join(artifactFolder(root, KEY), COMPILED),
      undefined,
      ['PENDING.json', 'manifest.pending.json'],
    ]);
    expect(await served(root)).toBe('one');
    expect((await treeOf(artifactFolder(root, KEY))).filter((path) => !path.includes('/'))).toEqual([MANIFEST]);
    expect(JSON.parse(await readFile(join(artifactFolder(root, KEY), MANIFEST), 'utf8')).imported).toEqual({
      from: 'one.tar.gz',
    });
  });

  it('serves the previous artifact until the gates of the new one have passed in staging', async () => {
    const root = folder();
    await registered(root, 'old');
    const seen: unknown[] = [];
    await install(root, 'new', true, async (model) => {
      seen.push(model.includes('.staging'), await served(root));
    });
    expect(seen).toEqual([true, 'old']);
    expect(await served(root)).toBe('new');
    expect(await siblings(root)).toEqual([NAME]);
  });

  // B03: a verdict holds for one path.
  it('looks at the new one where it stands then, and puts the previous one back when that is refused', async () => {
    const root = folder();
    await registered(root, 'old');
    const seen: unknown[] = [];
    const confirm = async (model: string): Promise<void> => {
      seen.push(model, await served(root));
      if (seen.length > 2) throw new RangeError('the gate');
    };
    const run = async (build: string) => {
      const { path, manifest } = await staged(root, build);
      return installArtifact(root, KEY, path, async () => manifest, { replace: true, now, confirm });
    };
    expect(await run('new')).toBe('registered');
    await expect(run('newer')).rejects.toThrow('the gate');
    const model = join(artifactFolder(root, KEY), COMPILED);
    expect(seen).toEqual([model, 'new', model, 'newer']);
    expect([await served(root), await siblings(root)]).toEqual(['new', [NAME]]);
  });

  // R02: nothing is registered when a gate fails, and the previous artifact stays.
  it.each([false, true])('registers nothing when a gate fails (replace: %p)', async (replace) => {
    const root = folder();
    if (replace) await registered(root, 'old');
    const failing = install(root, 'new', replace, async () => {
      throw new RangeError('the gate');
    });
    await expect(failing).rejects.toThrow('the gate');
    expect(await served(root)).toBe(replace ? 'old' : undefined);
    expect(await siblings(root)).toEqual(replace ? [NAME] : []);
  });

  it('leaves a registered artifact as it is unless told to replace it', async () => {
    const root = folder();
    await registered(root, 'old');
    expect(await install(root, 'new', false)).toBe('already-registered');
    expect(await served(root)).toBe('old');
  });

  it('takes the place of a folder that is no whole artifact, which goes to quarantine', async () => {
    const root = folder();
    await writeTree(artifactFolder(root, KEY), { [MANIFEST]: '' });
    expect(await install(root, 'one', false)).toBe('registered');
    expect(await served(root)).toBe('one');
    expect((await treeOf(join(root, 'artifacts/quarantine'))).filter((path) => path.endsWith(MANIFEST))).toHaveLength(
      1,
    );
  });

  const dead = (): number => spawnSync(process.execPath, ['-e', '']).pid;

  it.each([false, true])(
    'removes what a killed import left, once its process is dead (replace: %p)',
    async (replace) => {
      const root = folder();
      const leftover = {
        'manifest.pending.json': '{}',
        'PENDING.json': recordText({ pid: dead() }),
        [`${COMPILED}/x`]: '',
      };
      await writeTree(artifactFolder(root, KEY), leftover);
      expect(await served(root)).toBeUndefined();
      expect(await install(root, 'one', replace)).toBe('registered');
      expect(await served(root)).toBe('one');
      expect(await siblings(root)).toEqual([NAME]);
    },
  );

  it('does not disturb an import that runs', async () => {
    const root = folder();
    const marker = { 'PENDING.json': recordText({ pid: process.ppid, since: 'now' }), [`${COMPILED}/x`]: '' };
    await writeTree(artifactFolder(root, KEY), marker);
    for (const replace of [false, true])
      expect(await codeOf(() => install(root, 'one', replace))).toBe('TARGET_OCCUPIED');
    expect(await treeOf(artifactFolder(root, KEY))).toContain(`${COMPILED}/x`);
  });

  it('does not publish in a folder that another process took over', async () => {
    const root = folder();
    const code = await codeOf(() =>
      install(root, 'one', false, async () => {
        await writeTree(artifactFolder(root, KEY), { 'PENDING.json': recordText({ pid: process.ppid }) });
      }),
    );
    expect(code).toBe('TARGET_OCCUPIED');
    expect(await served(root)).toBeUndefined();
  });

  // Every step fails once: what is served is the old artifact or the new one, and an error before the point of no
  // return leaves nothing at the registered path.
  it.each(['rename', 'sync', 'write', 'unlink'] as const)('is all or nothing when a %s fails', async (name) => {
    for (const replace of [false, true])
      for (let failing = 1; ; failing++) {
        const root = folder();
        if (replace) await registered(root, 'old');
        await mkdir(dirname(artifactFolder(root, KEY)), { recursive: true });
        let count = 0;
        const call = storeSteps()[name] as (...args: string[]) => Promise<void>;
        const faulty = async (...args: string[]): Promise<void> => {
          if (++count === failing) throw Object.assign(new Error('disk'), { code: 'EIO' });
          await call(...args);
        };
        const outcome = await install(root, 'new', replace, undefined, { [name]: faulty }).catch(() => 'failed');
        const now = await served(root);
        expect([name, failing, replace, [replace ? 'old' : undefined, 'new'].includes(now)]).toEqual([
          name,
          failing,
          replace,
          true,
        ]);
        if (outcome === 'registered') expect(now).toBe('new');
        if (now !== 'new') expect(await siblings(root)).toEqual(replace ? [NAME] : []);
        if (count < failing) break;
      }
  });

  it('leaves no artifact when its process is killed while the gates run', async () => {
    const root = folder();
    const { path } = await staged(root, 'one');
    const script = `
      import { installArtifact } from ${JSON.stringify(pathToFileURL('dist/registry/install.js').href)};
      import { findModel } from ${JSON.stringify(pathToFileURL('dist/registry/models.js').href)};
      const prove = () => new Promise(() => { process.stdout.write('proving'); setInterval(() => 0, 1000); });
      const key = { model: findModel('laya-tiny'), bucket: 64 };
      await installArtifact(${JSON.stringify(root)}, key, ${JSON.stringify(path)}, prove, { replace: false, now: () => new Date() });
    `;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await served(root)).toBeUndefined();
    expect(await siblings(root)).toEqual([NAME]);
    expect(await install(root, 'two', false)).toBe('registered');
    expect(await served(root)).toBe('two');
  });
});
