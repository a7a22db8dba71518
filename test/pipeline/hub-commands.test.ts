import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { artifactFolder } from '../../registry/paths.js';
import { sha256 } from '../hub/repos.js';
import { TestHub } from '../hub/server.js';
import { registerLayaTiny } from '../registered.js';
import { KEY, writeArtifact } from '../registry/artifact.js';
import { keptFolder, treeOf, workspace } from '../workspace.js';
import { type CliRun, cli } from './cli.js';
import { REPO } from './prebuilt.js';

const folder = workspace();
const shop = keptFolder();
const TOKEN = 'hf_SecretSecretSecretSecretSecret';
let hub: TestHub;
beforeAll(async () => {
  hub = await TestHub.start();
});
afterAll(() => hub.close());
afterEach(() => hub.reset());

/** Runs a command on a root; its output and every file below the root must be free of the token (fault F17). */
async function run(root: string, args: readonly string[], env: Record<string, string> = {}): Promise<CliRun> {
  const cache = { LAYA_APPLE_CACHE: root, HF_HUB_CACHE: join(root, 'hub'), HF_ENDPOINT: hub.url, LAYA_DEBUG: '1' };
  const done = await cli(args, { ...cache, HF_TOKEN: TOKEN, LAYA_APPLE_PREBUILT_REPO: '', ...env });
  const files = await Promise.all(
    (await treeOf(root)).filter((path) => !path.endsWith('/')).map((path) => readFile(join(root, path), 'latin1')),
  );
  for (const text of [done.stdout, done.stderr, ...files]) expect(text.includes(TOKEN.slice(0, 8))).toBe(false);
  return done;
}

const errorOf = ({ stderr }: CliRun): string => JSON.parse(stderr.trim().split('\n').at(-1)!).code;

describe('publish and fetch', () => {
  it('bring an artifact from one root to another, with the same bytes', async () => {
    await registerLayaTiny(shop(), [64]);
    const published = await run(shop(), ['publish', 'laya-tiny', '--repo', REPO, '--create', '--tag', 'v1', '--json']);
    const report = JSON.parse(published.stdout);
    expect(report).toMatchObject({ outcome: 'published', rows: [{ model: 'laya-tiny', bucket: 64, action: 'add' }] });
    const archive = hub.repository(REPO).find('v1')!.files.get(report.rows[0].path)!;
    expect(sha256(archive.bytes)).toBe(report.rows[0].archive_sha256);

    const root = folder();
    const listed = JSON.parse((await run(root, ['fetch', '--list', '--repo', REPO, '--json'])).stdout);
    expect(listed).toMatchObject({
      commit: report.commit,
      artifacts: [{ profile: 'portable-coremltools9.0', here: true }],
    });
    const fetched = await run(root, [
      'fetch',
      'laya-tiny',
      '--length',
      '64',
      '--repo',
      REPO,
      '--revision',
      'v1',
      '--json',
    ]);
    expect(JSON.parse(fetched.stdout)).toMatchObject([{ commit: report.commit, rows: [{ outcome: 'registered' }] }]);
    const again = await run(root, ['fetch', '--all', '--repo', REPO]);
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('there already') });
    const verified = await run(root, ['verify', 'laya-tiny']);
    expect(verified.code).toBe(0);
    const missing = await run(root, ['fetch', 'laya-tiny', '--repo', REPO, '--json']);
    expect([missing.code, errorOf(missing)]).toEqual([1, 'ARTIFACT_MISSING']);
  });
});

describe('fetch --all', () => {
  it('does not take nothing for everything: neither of one model, nor of all, nor of another profile', async () => {
    const root = folder();
    hub.repository(REPO).commit({
      'index.json': Buffer.from(
        JSON.stringify({ format: 'laya-apple-prebuilt-index', format_version: 1, artifacts: [] }),
      ),
    });
    for (const args of [['laya-tiny'], [], ['laya-tiny', '--profile', 'apple-m1-macos15.0-coremltools9.0']]) {
      const done = await run(root, ['fetch', ...args, '--all', '--repo', REPO, '--json']);
      expect([errorOf(done), done.code, done.stdout]).toEqual(['ARTIFACT_MISSING', 1, '']);
    }
    expect((await treeOf(root)).filter((path) => path.includes('artifacts/laya'))).toEqual([]);
  });
});

describe('a command that can not do it', () => {
  it.each<[string, number, string[], Record<string, string>?]>([
    ['USAGE', 2, ['fetch', '--repo', REPO]],
    ['USAGE', 2, ['fetch', 'laya-tiny', '--length', '65', '--repo', REPO]],
    ['USAGE', 2, ['fetch', 'laya-tiny', '--all', '--length', '64', '--repo', REPO]],
    ['USAGE', 2, ['fetch', '--all', '--length', '64', '--repo', REPO]],
    ['MODEL_UNKNOWN', 1, ['fetch', 'other', '--repo', REPO]],
    ['HUB_NAME', 1, ['fetch', 'laya-tiny', '--repo', 'no-owner']],
    ['HUB_NAME', 1, ['fetch', 'laya-tiny', '--repo', REPO, '--revision', '../x']],
    ['HUB_NOT_FOUND', 1, ['fetch', 'laya-tiny', '--repo', 'owner/none']],
    ['OFFLINE', 1, ['fetch', 'laya-tiny', '--repo', REPO, '--offline']],
    ['OFFLINE', 1, ['fetch', 'laya-tiny'], { HF_HUB_OFFLINE: '1' }],
    ['OFFLINE', 1, ['publish', '--repo', REPO], { HF_HUB_OFFLINE: '1' }],
    ['REPO_MISSING', 1, ['publish', '--repo', 'owner/none']],
    ['TOKEN_MISSING', 1, ['publish', '--repo', REPO], { HF_TOKEN: ' ' }],
    ['HUB_TOKEN', 1, ['publish', '--repo', REPO], { HF_TOKEN: `${TOKEN}\n${TOKEN}` }],
    ['HUB_TOKEN', 1, ['fetch', 'laya-tiny', '--repo', REPO], { HF_TOKEN: `${TOKEN}\u200b` }],
    ['HUB_ENDPOINT', 1, ['fetch', 'laya-tiny', '--repo', REPO], { HF_ENDPOINT: 'ftp://host' }],
    ['ARTIFACT_MISSING', 1, ['publish', 'laya', '--repo', REPO]],
  ])('tells %s with exit code %i: %j', async (code, exit, args, env = {}) => {
    const root = folder();
    await writeArtifact(artifactFolder(root, { ...KEY, bucket: 96 }), undefined, ({ artifact }) => {
      artifact.length = 96;
    });
    hub.repository(REPO).commit({ 'README.md': 'nothing' });
    const done = await run(root, [...args, '--json'], env);
    expect([errorOf(done), done.code, done.stdout]).toEqual([code, exit, '']);
    if (code === 'OFFLINE') expect(hub.log()).toEqual([]);
  });
});
