import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ensurePython } from '../../pipeline/tools/python.js';
import { writeTree } from '../files.js';
import { cli } from '../pipeline/cli.js';
import { testContext } from '../pipeline/context.js';
import { REPO } from '../pipeline/prebuilt.js';
import { registerLayaTiny } from '../registered.js';
import { keptFolder, workspace } from '../workspace.js';
import { sha256 } from './repos.js';
import { TestHub } from './server.js';

const folder = workspace();
const shop = keptFolder();
const LARGE = randomBytes(5000);
let hub: TestHub;
let python = '';
beforeAll(async () => {
  ({ python } = await ensurePython('peer-store', testContext('')));
  hub = await TestHub.start();
}, 300_000);
afterAll(() => hub.close());
afterEach(() => hub.reset());

/** One operation of Python's huggingface_hub, in a process of its own. */
async function client(...args: string[]): Promise<unknown> {
  const env = {
    PATH: process.env.PATH,
    HOME: folder(),
    HF_ENDPOINT: hub.url,
    HF_TOKEN: 'hf_test',
    HF_HUB_DISABLE_XET: '1',
    HF_HUB_DISABLE_TELEMETRY: '1',
    HF_HUB_DISABLE_PROGRESS_BARS: '1',
    LC_ALL: 'C.UTF-8',
  };
  const script = ['-I', '-W', 'ignore', 'test/hub/python_client.py', ...args];
  return JSON.parse((await promisify(execFile)(python, script, { env })).stdout);
}

const ours = (root: string, ...args: string[]) =>
  cli(args, {
    LAYA_APPLE_CACHE: root,
    HF_HUB_CACHE: join(root, 'hub'),
    HF_ENDPOINT: hub.url,
    HF_TOKEN: 'hf_test',
    LAYA_APPLE_PREBUILT_REPO: '',
  });

const contentReads = () => hub.log().filter((line) => /^GET \/lfs/.test(line));

describe("the test hub serves Python's huggingface_hub", () => {
  it('making a repository, uploading in parts, listing and downloading', async () => {
    const root = folder();
    hub.partSize = 2000;
    await writeTree(root, { 'index.json': '{"a": 1}\n', 'deep/er/a.tar.gz': LARGE });
    const commit = String(await client('create', root, 'private'));
    expect(hub.log().filter((line) => line.startsWith('PUT'))).toHaveLength(3);
    expect(hub.repository(REPO).find(commit)!.files.get('deep/er/a.tar.gz')!.bytes).toEqual(LARGE);
    expect(await client('listing', commit)).toMatchObject({
      'deep/er/a.tar.gz': [5000, sha256(LARGE)],
      'index.json': [9, null],
    });
    const got = String(await client('download', 'main', folder()));
    expect(await readFile(join(got, 'deep/er/a.tar.gz'))).toEqual(LARGE);
  });

  it('committing on top of a named parent only', async () => {
    const first = hub.repository(REPO).commit({ 'index.json': '{}' }).sha;
    expect(await client('commit', 'index.json', '{"b": 2}', first)).toMatch(/^[0-9a-f]{40}$/);
    expect(await client('commit', 'index.json', '{"c": 3}', first)).toBe(412);
    expect(hub.repository(REPO).find('main')!.files.get('index.json')!.bytes.toString()).toBe('{"b": 2}');
  });
});

describe('one hub cache', () => {
  const publish = async () => {
    await registerLayaTiny(shop(), [64]);
    const { stdout } = await ours(shop(), 'publish', 'laya-tiny', '--repo', REPO, '--create', '--json');
    const { commit, rows } = JSON.parse(stdout);
    return { commit: String(commit), path: String(rows[0].path), sha: rows[0].archive_sha256 };
  };

  it('huggingface_hub finds by commit what fetch downloaded, without a connection', async () => {
    const { commit, path, sha } = await publish();
    const root = folder();
    expect(await ours(root, 'fetch', 'laya-tiny', '--length', '64', '--repo', REPO)).toMatchObject({ code: 0 });
    hub.arrivals.length = 0;
    const found = await client('cached', path, commit, join(root, 'hub'));
    expect(sha256(await readFile(String(found)))).toBe(sha);
    expect(hub.log()).toEqual([]);
  });

  it('fetch takes by commit what huggingface_hub downloaded, without a connection', async () => {
    const { commit } = await publish();
    const root = folder();
    await client('download', commit, join(root, 'hub'));
    expect(contentReads()).toHaveLength(1);
    hub.arrivals.length = 0;
    const args = ['fetch', 'laya-tiny', '--length', '64', '--repo', REPO, '--revision', commit, '--offline', '--json'];
    const fetched = await ours(root, ...args);
    expect(JSON.parse(fetched.stdout)).toMatchObject([{ commit, rows: [{ outcome: 'registered' }] }]);
    expect(hub.log()).toEqual([]);
  });
});
