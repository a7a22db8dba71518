import { mkdir, readFile, rename, rm, symlink, unlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { type CheckpointOrder, fetchCheckpoint } from '../../../registry/hub/checkpoint.js';
import { html } from '../../hub/replies.js';
import { type Commit, gitSha1, type NewFile, sha256 } from '../../hub/repos.js';
import { TestHub } from '../../hub/server.js';
import { contents, failure, inFolder, quickClock } from './fixture.js';

const REPO = 'owner/model';
const WEIGHTS = Buffer.from('the weights of a model'.repeat(50));
const FILES: Readonly<Record<string, NewFile>> = {
  'README.md': 'about',
  'model.safetensors': WEIGHTS,
  'rl_agent_config.json': '{"encoder": "x"}',
  'encoder/config.json': '{"model_type": "modernbert"}',
  'tokenizer/tokenizer.json': { bytes: Buffer.from('{"model": {}}'), lfs: true },
  'tokenizer/tokenizer_config.json': '{}',
  'tokenizer/special_tokens_map.json': '{"pad_token": "[PAD]"}',
  'multilingual/model.safetensors': Buffer.from('a sibling'),
};
const WANTED = Object.keys(FILES).filter((path) => !/README|multilingual/.test(path));

let hub: TestHub;
let commit: Commit;
beforeAll(async () => {
  hub = await TestHub.start();
});
afterAll(() => hub.close());
afterEach(() => hub.reset());

function order(cacheDir: string, more: Partial<CheckpointOrder> = {}): CheckpointOrder {
  const pins = { repo: REPO, revision: commit.sha, weightsSha256: sha256(WEIGHTS) };
  return { ...pins, cacheDir, endpoint: hub.url, timing: quickClock(), ...more };
}

/** Publishes the files and runs the test in an empty cache folder. */
function withHub(run: (cache: string) => Promise<void>, files = FILES): Promise<void> {
  commit = hub.repository(REPO).commit(files);
  return inFolder(run);
}

const noSocket = () => Promise.reject(new Error('a socket was opened'));
const blob = (cache: string, path: string) => {
  const file = commit.files.get(path)!;
  return join(cache, 'models--owner--model/blobs', file.lfs ? file.sha256 : file.oid);
};
const pointer = (cache: string, path: string) => join(cache, 'models--owner--model/snapshots', commit.sha, path);
const text = (path: string) => commit.files.get(path)!.bytes.toString();

async function expectComplete(cache: string): Promise<void> {
  for (const path of WANTED) expect(await readFile(pointer(cache, path), 'utf8')).toBe(text(path));
  expect(Object.keys(await contents(cache)).filter((path) => path.includes('incomplete'))).toEqual([]);
}

describe('an empty cache', () => {
  test('gets the checkpoint files of the commit in the layout of a Hugging Face cache', () =>
    withHub(async (cache) => {
      const { root, downloaded } = await fetchCheckpoint(order(cache));
      expect(root).toBe(join(cache, 'models--owner--model/snapshots', commit.sha));
      expect([...downloaded].sort()).toEqual([...WANTED].sort());
      const found = await contents(join(cache, 'models--owner--model'));
      const record = found[`trees/${commit.sha}.json`];
      const expected: Record<string, string | undefined> = { [`trees/${commit.sha}.json`]: record };
      for (const path of WANTED) {
        const { lfs, oid, sha256: digest } = commit.files.get(path)!;
        const name = lfs ? digest : oid;
        expected[`blobs/${name}`] = text(path);
        expected[`snapshots/${commit.sha}/${path}`] = `-> ../../${path.includes('/') ? '../' : ''}blobs/${name}`;
      }
      expect(found).toEqual(expected);
      expect(JSON.parse(record!).files['model.safetensors']).toMatchObject({
        lfs_sha256: sha256(WEIGHTS),
        lfs_size: 1100,
      });
      expect(Object.keys(JSON.parse(record!).files).sort()).toEqual(Object.keys(FILES).sort());
    }));

  test('tells the bytes that came and all that have to come', () =>
    withHub(async (cache) => {
      const seen: [number, number][] = [];
      await fetchCheckpoint(order(cache, { onProgress: (done, total) => seen.push([done, total]) }));
      const total = WANTED.reduce((sum, path) => sum + commit.files.get(path)!.bytes.length, 0);
      expect(seen.at(-1)).toEqual([total, total]);
      expect(seen.every(([done, all], i) => all === total && done >= (seen[i - 1]?.[0] ?? 0))).toBe(true);
    }));

  test('does without the optional file where the commit has none', () => {
    const { 'tokenizer/special_tokens_map.json': _none, ...files } = FILES;
    return withHub(async (cache) => {
      const { downloaded } = await fetchCheckpoint(order(cache));
      expect(downloaded).toHaveLength(5);
      await fetchCheckpoint(order(cache, { fetch: noSocket }));
    }, files);
  });

  test('reads a listing of several pages', () =>
    withHub(async (cache) => {
      hub.pageSize = 3;
      await fetchCheckpoint(order(cache));
      await expectComplete(cache);
    }));

  // F08: the commit counts, not where a branch points meanwhile.
  test('gets the pinned commit when the branch moves on', () =>
    withHub(async (cache) => {
      const pinned = commit;
      hub.repository(REPO).commit({ ...FILES, 'rl_agent_config.json': '{"encoder": "newer"}' });
      await fetchCheckpoint(order(cache));
      expect(await readFile(pointer(cache, 'rl_agent_config.json'), 'utf8')).toBe('{"encoder": "x"}');
      expect(hub.log().every((line) => !line.includes('main'))).toBe(true);
      expect(hub.log().some((line) => line.includes(pinned.sha))).toBe(true);
    }));

  test('is filled once by several at a time', () =>
    withHub(async (cache) => {
      await Promise.all(Array.from({ length: 4 }, () => fetchCheckpoint(order(cache))));
      await expectComplete(cache);
    }));

  // F06: all or nothing counts as complete.
  test('is not taken for complete after a failure, and the next run gets only the rest', () =>
    withHub(async (cache) => {
      hub.failAlways(/tokenizer_config/, { kind: 'reply', status: 404 });
      expect(await failure(fetchCheckpoint(order(cache)))).toMatchObject({ code: 'HUB_NOT_FOUND' });
      const offline = await failure(fetchCheckpoint(order(cache, { offline: true })));
      expect(offline).toMatchObject({ code: 'OFFLINE' });
      expect(offline.message).toContain('tokenizer/tokenizer_config.json missing');
      const before = hub.repositories.get(REPO)!;
      hub.reset();
      hub.repositories.set(REPO, before);
      const { downloaded } = await fetchCheckpoint(order(cache));
      expect(downloaded).toEqual(['tokenizer/tokenizer_config.json']);
      await expectComplete(cache);
    }));
});

describe('the pins', () => {
  test('refuse a commit with other weights before anything is downloaded', () =>
    withHub(async (cache) => {
      const error = await failure(fetchCheckpoint(order(cache, { weightsSha256: '0'.repeat(64) })));
      expect(error).toMatchObject({ code: 'HUB_PIN', expected: '0'.repeat(64), found: sha256(WEIGHTS) });
      expect(await contents(cache)).toEqual({});
      expect(hub.log().some((line) => line.includes('resolve'))).toBe(false);
    }));

  test('hold for weights that are no LFS file', () =>
    withHub(
      async (cache) => {
        const error = await failure(fetchCheckpoint(order(cache)));
        expect(error).toMatchObject({ code: 'HUB_CORRUPT', expected: `sha256 ${sha256(WEIGHTS)}` });
        expect(Object.keys(await contents(cache)).some((path) => path.endsWith('model.safetensors'))).toBe(false);
        const weightsSha256 = sha256(Buffer.from('other'));
        await fetchCheckpoint(order(cache, { weightsSha256 }));
        await fetchCheckpoint(order(cache, { weightsSha256, fetch: noSocket }));
      },
      { ...FILES, 'model.safetensors': { bytes: Buffer.from('other'), lfs: false } },
    ));

  test('refuse a commit that lacks a required file', () => {
    const { 'encoder/config.json': _none, ...files } = FILES;
    return withHub(async (cache) => {
      const error = await failure(fetchCheckpoint(order(cache)));
      expect(error).toMatchObject({ code: 'HUB_FILE_MISSING', found: expect.stringContaining('encoder/config.json') });
      expect(await contents(cache)).toEqual({});
    }, files);
  });

  test.each([
    { repo: 'model' },
    { repo: 'a/b/c' },
    { repo: '../b' },
    { repo: 'a/..' },
    { repo: 'a--b/c' },
    { repo: 'a/b\n' },
    { repo: '' },
    { revision: 'main' },
    { revision: 'A'.repeat(40) },
    { revision: 'c5d7873' },
  ])('must be a repository and a commit: %j', (more) =>
    withHub(async (cache) => {
      const error = await failure(fetchCheckpoint(order(cache, { ...more, fetch: noSocket })));
      expect(error).toMatchObject({ code: 'HUB_NAME' });
    }),
  );
});

describe('a full cache', () => {
  // F05: neither a socket nor a setting is needed.
  test('opens no socket', () =>
    withHub(async (cache) => {
      await fetchCheckpoint(order(cache));
      const { downloaded } = await fetchCheckpoint(order(cache, { fetch: noSocket }));
      expect(downloaded).toEqual([]);
      await fetchCheckpoint(order(cache, { fetch: noSocket, offline: true }));
      await fetchCheckpoint(order(cache, { fetch: noSocket, endpoint: 'nonsense', env: { HF_HUB_OFFLINE: '1' } }));
    }));

  test('that an older huggingface_hub left, without a list of files, opens no socket', () =>
    withHub(async (cache) => {
      await fetchCheckpoint(order(cache));
      await rm(join(cache, 'models--owner--model/trees'), { recursive: true });
      await fetchCheckpoint(order(cache, { fetch: noSocket }));
      await rm(pointer(cache, 'tokenizer/special_tokens_map.json'));
      await fetchCheckpoint(order(cache, { fetch: noSocket }));
    }));

  // F21: a name or a size is no proof.
  test.each(WANTED)('has a damaged %s repaired', (path) =>
    withHub(async (cache) => {
      await fetchCheckpoint(order(cache));
      const damaged = Buffer.from(commit.files.get(path)!.bytes).fill(0, 0, 1);
      await writeFile(blob(cache, path), damaged);
      const offline = await failure(fetchCheckpoint(order(cache, { offline: true })));
      expect(offline).toMatchObject({ code: 'OFFLINE' });
      expect(offline.message).toContain(`${path} wrong`);
      // F05: what is there stays there when the network can't help.
      expect(await readFile(blob(cache, path))).toEqual(damaged);
      expect((await fetchCheckpoint(order(cache))).downloaded).toEqual([path]);
      await expectComplete(cache);
    }),
  );

  // F21: the second failure is final.
  test('keeps a damaged file out when the hub serves it damaged too', () =>
    withHub(async (cache) => {
      await fetchCheckpoint(order(cache));
      await writeFile(blob(cache, 'model.safetensors'), 'rubbish');
      hub.failAlways(/GET \/lfs/, { kind: 'reply', status: 200, body: html });
      const error = await failure(fetchCheckpoint(order(cache)));
      expect(error).toMatchObject({ code: 'HUB_HTML' });
      expect(error.hint).toContain('--checkpoint');
    }));

  test('has a snapshot without links restored from its contents, without a socket', () =>
    withHub(async (cache) => {
      await fetchCheckpoint(order(cache));
      await rm(pointer(cache, ''), { recursive: true });
      await fetchCheckpoint(order(cache, { fetch: noSocket }));
      await expectComplete(cache);
    }));

  // F04, F21: dangling links, folders and other files in a file's place.
  test.each<[string, (path: string) => Promise<unknown>]>([
    ['a dangling link', (path) => symlink('../../blobs/none', path)],
    ['an empty folder', (path) => mkdir(path)],
    ['another file', (path) => writeFile(path, 'rewritten by another program')],
    ['a link to itself', (path) => symlink(path, path)],
  ])('has %s in the place of a file replaced', (_name, put) =>
    withHub(async (cache) => {
      await fetchCheckpoint(order(cache));
      for (const path of ['tokenizer/tokenizer_config.json', 'model.safetensors']) {
        await unlink(pointer(cache, path));
        await put(pointer(cache, path));
      }
      await fetchCheckpoint(order(cache, { fetch: noSocket }));
      await expectComplete(cache);
    }),
  );

  test('does not delete a folder with content in the place of a file', () =>
    withHub(async (cache) => {
      await fetchCheckpoint(order(cache));
      const path = pointer(cache, 'rl_agent_config.json');
      await unlink(path);
      await mkdir(path);
      await writeFile(join(path, 'mine'), 'keep me');
      expect(await failure(fetchCheckpoint(order(cache)))).toMatchObject({ code: 'HUB_CACHE' });
      expect(await readFile(join(path, 'mine'), 'utf8')).toBe('keep me');
    }));

  test('takes weights without a link when their content is the pinned one', () =>
    withHub(async (cache) => {
      await fetchCheckpoint(order(cache));
      await rm(join(cache, 'models--owner--model/trees'), { recursive: true });
      await unlink(pointer(cache, 'model.safetensors'));
      await rename(blob(cache, 'model.safetensors'), pointer(cache, 'model.safetensors'));
      await fetchCheckpoint(order(cache, { fetch: noSocket }));
    }));

  test('does not trust a file that neither a link nor a list vouches for', () =>
    withHub(async (cache) => {
      await fetchCheckpoint(order(cache));
      await rm(join(cache, 'models--owner--model/trees'), { recursive: true });
      await unlink(pointer(cache, 'encoder/config.json'));
      await writeFile(pointer(cache, 'encoder/config.json'), text('encoder/config.json'));
      const error = await failure(fetchCheckpoint(order(cache, { offline: true })));
      expect(error.message).toContain('encoder/config.json unverifiable');
      expect((await fetchCheckpoint(order(cache))).downloaded).toEqual([]);
      await expectComplete(cache);
    }));

  test.each(['', '{', '[]', '{"format_version": 2, "files": {}}', '{"format_version": 1, "files": {"a": 1}}'])(
    'does not need a list of files that reads %j',
    (record) =>
      withHub(async (cache) => {
        await fetchCheckpoint(order(cache));
        await writeFile(join(cache, 'models--owner--model/trees', `${commit.sha}.json`), record);
        await fetchCheckpoint(order(cache, { fetch: noSocket }));
      }),
  );

  test('has a list of files that contradicts the commit replaced when the hub is asked', () =>
    withHub(async (cache) => {
      await fetchCheckpoint(order(cache));
      const list = join(cache, 'models--owner--model/trees', `${commit.sha}.json`);
      const right = await readFile(list, 'utf8');
      const oid = commit.files.get('encoder/config.json')!.oid;
      await writeFile(list, right.replace(oid, gitSha1(Buffer.from('another'))));
      expect(await failure(fetchCheckpoint(order(cache, { offline: true })))).toMatchObject({ code: 'OFFLINE' });
      await fetchCheckpoint(order(cache));
      expect(await readFile(list, 'utf8')).toBe(right);
    }));
});

describe('without a network', () => {
  test('an error names the repository, the commit and the way around', () =>
    withHub(async (cache) => {
      const closed = await TestHub.start();
      const endpoint = closed.url;
      await closed.close();
      for (const [code, more] of [
        ['OFFLINE', { offline: true }],
        ['OFFLINE', { env: { HF_HUB_OFFLINE: '1' } }],
        ['HUB_UNREACHABLE', { endpoint }],
      ] as const) {
        const error = await failure(fetchCheckpoint(order(cache, more)));
        expect(error).toMatchObject({ name: 'HubError', code, hint: expect.stringContaining('--checkpoint DIR') });
        expect(error.message).toContain(REPO);
        expect(error.message).toContain(commit.sha);
        expect(await contents(cache)).toEqual({});
      }
    }));

  test('a cache that can not be written is told by its path', () =>
    withHub(async (cache) => {
      await writeFile(join(cache, 'file'), '');
      const error = await failure(fetchCheckpoint(order(join(cache, 'file'))));
      expect(error).toMatchObject({ code: 'HUB_CACHE', where: expect.stringContaining(join(cache, 'file')) });
    }));

  test('the reason of the caller is thrown when it stops', () =>
    withHub(async (cache) => {
      const reason = new Error('enough');
      const controller = new AbortController();
      const stop = order(cache, { signal: controller.signal, onProgress: () => controller.abort(reason) });
      expect(await failure(fetchCheckpoint(stop))).toBe(reason);
    }));
});

describe('a hostile or broken listing', () => {
  const file = (more: object) => ({ type: 'file', path: 'model.safetensors', oid: '0'.repeat(40), size: 5, ...more });
  test.each<[string, unknown]>([
    ['an object', { error: 'no' }],
    ['a path twice', [file({}), file({})]],
    ['a path that is no text', [file({ path: 5 })]],
    ['an oid that is no digest', [file({ oid: '../../../etc/passwd' })]],
    ['a negative size', [file({ size: -1 })]],
    ['a size that is no number', [file({ size: '5' })]],
    ['an LFS digest that is none', [file({ lfs: { oid: 'abc', size: 5 } })]],
    ['an LFS digest that is a path', [file({ lfs: { oid: `../${'0'.repeat(61)}`, size: 5 } })]],
  ])('is refused: %s', (_name, body) =>
    withHub(async (cache) => {
      hub.failNext(/tree/, { kind: 'reply', status: 200, body: JSON.stringify(body) });
      expect(await failure(fetchCheckpoint(order(cache)))).toMatchObject({ code: 'HUB_LISTING' });
      expect(await contents(cache)).toEqual({});
    }),
  );

  test('is refused when it never ends', () =>
    withHub(async (cache) => {
      const headers = { link: '<?recursive=true&cursor=1>; rel="next"' };
      hub.failAlways(/tree/, { kind: 'reply', status: 200, headers, body: '[]' });
      expect(await failure(fetchCheckpoint(order(cache)))).toMatchObject({ code: 'HUB_LISTING' });
    }));

  // F01
  test('is told as a web page when it is one', () =>
    withHub(async (cache) => {
      hub.failAlways(/tree/, { kind: 'reply', status: 200, headers: { 'content-type': 'text/html' }, body: html });
      expect(await failure(fetchCheckpoint(order(cache)))).toMatchObject({ code: 'HUB_HTML' });
    }));

  test('is told as missing where the repository or commit is', () =>
    withHub(async (cache) => {
      for (const more of [{ repo: 'owner/other' }, { revision: '0'.repeat(40) }]) {
        expect(await failure(fetchCheckpoint(order(cache, more)))).toMatchObject({ code: 'HUB_NOT_FOUND' });
      }
    }));
});

test('leftovers of killed downloads go after a day, younger ones and those of others stay', () =>
  withHub(async (cache) => {
    const blobs = join(cache, 'models--owner--model/blobs');
    await mkdir(blobs, { recursive: true });
    const old = new Date(Date.now() - 2 * 86_400_000);
    for (const name of ['aa.123-0123abcd.incomplete', 'bb.incomplete', 'cc.9-89abcdef.incomplete']) {
      await writeFile(join(blobs, name), 'part');
      if (!name.startsWith('cc')) await utimes(join(blobs, name), old, old);
    }
    await fetchCheckpoint(order(cache));
    const left = Object.keys(await contents(blobs)).filter((name) => name.endsWith('.incomplete'));
    expect(left.sort()).toEqual(['bb.incomplete', 'cc.9-89abcdef.incomplete']);
  }));

// F17: neither on disk nor in an error.
test('a token is sent, and stored nowhere', () =>
  withHub(async (cache) => {
    hub.repository(REPO).token = 'hf_abcdefghijklmnop';
    const refused = await failure(fetchCheckpoint(order(cache)));
    expect(refused).toMatchObject({ code: 'HUB_ACCESS', hint: expect.stringContaining('HF_TOKEN') });
    await fetchCheckpoint(order(cache, { env: { HF_TOKEN: ' hf_abcdefghijklmnop\n' } }));
    expect(JSON.stringify(await contents(cache))).not.toContain('hf_abcde');
    expect(hub.arrivals.filter(({ at }) => at === 'content').every(({ headers }) => !headers.authorization)).toBe(true);
  }));
