import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { InterruptedError } from '../../pipeline/errors.js';
import { type FetchOrder, fetchArtifacts } from '../../pipeline/fetch.js';
import { portableToolchain } from '../../pipeline/toolchain/portable.js';
import { locateArtifact } from '../../registry/locate.js';
import { artifactFolder } from '../../registry/paths.js';
import { readArtifact, verifyTree } from '../../registry/read.js';
import type { Loose } from '../files.js';
import { type Fault, html } from '../hub/replies.js';
import { pointerText } from '../hub/repos.js';
import { TestHub } from '../hub/server.js';
import { registerLayaTiny } from '../registered.js';
import { codeOf, keptFolder, treeOf, workspace } from '../workspace.js';
import { fetchOrder, filesOf, hubContext, MODEL, type Prebuilt, prebuiltFrom, quickHub, REPO } from './prebuilt.js';

const folder = workspace();
const shop = keptFolder();
const key = (bucket: number) => ({ model: MODEL, bucket });
let hub: TestHub;
let all: Prebuilt[];
beforeAll(async () => {
  hub = await TestHub.start();
  await registerLayaTiny(shop(), [64, 96]);
  all = await prebuiltFrom(shop(), [64, 96]);
}, 300_000);
afterAll(() => hub.close());
afterEach(() => hub.reset());

const put = (files = filesOf(all)) => hub.repository(REPO).commit(files);

async function run(root: string, order: Partial<FetchOrder> = {}, change: Parameters<typeof hubContext>[2] = {}) {
  const context = hubContext(hub, root, change);
  return fetchArtifacts(fetchOrder(order), await quickHub(context, { inactivityMs: 2000 }), context);
}

const whole = async (root: string, bucket: number) =>
  verifyTree(await readArtifact(key(bucket), artifactFolder(root, key(bucket))));
/** What a failed fetch may leave below artifacts/: locks, and the folder that staging was in. */
const leftovers = async (root: string) =>
  (await treeOf(root)).filter(
    (path) => path.startsWith('artifacts/') && !/^artifacts\/(\.locks\/.*|\.staging\/)?$/.test(path),
  );
const downloads = () => hub.arrivals.filter(({ at }) => at === 'content').map(({ headers }) => headers.range);

describe('fetch', () => {
  it('registers what the index names, proven here, and keeps it in the cache by commit', async () => {
    const root = folder();
    const { sha } = put();
    const report = await run(root, { buckets: [64, 96] });
    expect(report).toMatchObject({ model: 'laya-tiny', repo: REPO, commit: sha });
    expect(report.rows.map(({ outcome }) => outcome)).toEqual(['registered', 'registered']);
    for (const [i, bucket] of [64, 96].entries())
      expect((await whole(root, bucket)).v1).toBe(all[i]!.entry.artifact_sha256);
    const { imported } = JSON.parse(await readFile(join(artifactFolder(root, key(64)), 'manifest.json'), 'utf8'));
    const { path, archive_sha256 } = all[0]!.entry;
    expect(imported).toMatchObject({ from: `hf://${REPO}@${sha}/${path}#sha256=${archive_sha256}`, archive_sha256 });
    const cache = join(root, 'hub', 'models--owner--prebuilt');
    expect(await readFile(join(cache, 'snapshots', sha, path))).toEqual(all[0]!.bytes);
    expect(await readFile(join(cache, 'refs', 'main'), 'utf8')).toBe(sha);
    expect((await treeOf(root)).filter((one) => /incomplete|staging\/./.test(one))).toEqual([]);
  });

  // F27: only what a full verification passes is left alone.
  it('opens no socket for what is registered and whole', async () => {
    const root = folder();
    put();
    await run(root);
    hub.arrivals.length = 0;
    expect((await run(root)).rows).toMatchObject([{ outcome: 'already-registered' }]);
    expect(hub.log()).toEqual([]);
  });

  it('quarantines a corrupt copy, and registers the published one', async () => {
    const root = folder();
    put();
    await run(root);
    await writeFile(join(artifactFolder(root, key(64)), 'model.mlmodelc/weights/weight.bin'), 'rubbish');
    expect((await run(root)).rows).toMatchObject([{ outcome: 'registered' }]);
    await whole(root, 64);
    const names = (await treeOf(join(root, 'artifacts/quarantine'))).filter((one) => one.endsWith('QUARANTINED.json'));
    expect(names).toHaveLength(1);
  });

  it('takes the place of a whole one with force only', async () => {
    const root = folder();
    put();
    await run(root);
    const before = await readFile(join(artifactFolder(root, key(64)), 'manifest.json'), 'utf8');
    expect((await run(root, { force: true }, { now: () => new Date('2026-02-02T03:04:05Z') })).rows).toMatchObject([
      { outcome: 'registered' },
    ]);
    expect(await readFile(join(artifactFolder(root, key(64)), 'manifest.json'), 'utf8')).not.toBe(before);
    expect((await treeOf(root)).filter((one) => /\.old-|\.failed-/.test(one))).toEqual([]);
  });

  it('fetches all that there is for the machine when no bucket is named', async () => {
    const root = folder();
    put(filesOf(all.slice(1)));
    expect((await run(root, { buckets: undefined })).rows).toMatchObject([{ bucket: 96, outcome: 'registered' }]);
  });

  // F08: everything is read by one commit.
  it('reads the archives of the commit that the index came from when the branch moves', async () => {
    const root = folder();
    const { sha } = put();
    const broken = { ...filesOf(all), [all[0]!.entry.path]: { bytes: Buffer.from('another'), lfs: true } };
    hub.before(/GET .*index.json/, () => hub.repository(REPO).commit(broken));
    expect(await run(root)).toMatchObject({ commit: sha, rows: [{ outcome: 'registered' }] });
  });
});

describe('a set', () => {
  // F06: all of it or nothing.
  it('is not registered when one archive is damaged', async () => {
    const root = folder();
    const bytes = Buffer.from(all[1]!.bytes);
    bytes[bytes.length >> 1]! ^= 1;
    put();
    hub.failAlways(new RegExp(`GET /lfs/.*${all[1]!.entry.archive_sha256}`), {
      kind: 'reply',
      status: 200,
      body: bytes,
    });
    expect(await codeOf(() => run(root, { buckets: [64, 96] }))).toBe('HUB_CORRUPT');
    expect(await leftovers(root)).toEqual([]);
  });

  it('is not registered when a gate refuses one, and the previous ones stay', async () => {
    const root = folder();
    put();
    await run(root);
    const before = await treeOf(artifactFolder(root, key(64)));
    const toolchain = portableToolchain();
    const wrong: FetchOrder['toolchain'] = {
      ...toolchain,
      open: async (model) => {
        const executable = await toolchain.open(model);
        const run: typeof executable.run = async (inputs) => {
          const outputs = await executable.run(inputs);
          return model.includes('L96') ? { ...outputs, logits: outputs.logits!.map((value, i) => value + i) } : outputs;
        };
        return { ...executable, run, release: () => executable.release() };
      },
    };
    const { rows } = await run(root, { buckets: [64, 96], force: true, toolchain: wrong });
    expect(rows).toMatchObject([
      { bucket: 64, outcome: 'withheld' },
      { bucket: 96, outcome: 'rejected', code: 'PARITY_FAILED' },
    ]);
    expect(await treeOf(artifactFolder(root, key(64)))).toEqual(before);
    expect(await locateArtifact(root, key(96))).toBeUndefined();
    expect((await treeOf(join(root, 'artifacts/rejected'))).length).toBe(1);
  });

  it('that does not exist whole is refused before anything is downloaded', async () => {
    put(filesOf(all.slice(0, 1)));
    const root = folder();
    expect(await codeOf(() => run(root, { buckets: [64, 96] }))).toBe('ARTIFACT_MISSING');
    expect(downloads()).toEqual([]);
    expect(await leftovers(root)).toEqual([]);
  });
});

// F01, F03, F15: what comes instead of an archive.
describe('an archive that does not come as it should', () => {
  it.each<[string, Fault]>([
    ['HUB_HTML', { kind: 'reply', status: 200, body: html }],
    ['HUB_POINTER', { kind: 'reply', status: 200, body: pointerText(Buffer.from('x')) }],
    ['HUB_SHORT', { kind: 'reply', status: 200, body: 'short' }],
    ['HUB_NOT_FOUND', { kind: 'reply', status: 404 }],
    ['HUB_RATE_LIMITED', { kind: 'reply', status: 429, headers: { 'retry-after': '99999' } }],
    ['HUB_SERVER', { kind: 'reply', status: 503 }],
    ['HUB_TIMEOUT', { kind: 'stall', after: 100 }],
    ['HUB_UNREACHABLE', { kind: 'cut', after: 100 }],
  ])('is told as %s, and nothing is registered', async (code, fault) => {
    const root = folder();
    put();
    hub.failAlways(/GET \/lfs/, fault);
    const context = hubContext(hub, root);
    const access = await quickHub(context, { inactivityMs: 200, retries: 1 });
    expect(await codeOf(() => fetchArtifacts(fetchOrder(), access, context))).toBe(code);
    expect(await leftovers(root)).toEqual([]);
    expect((await treeOf(root)).filter((path) => path.endsWith('.tar.gz'))).toEqual([]);
  });

  it('goes on where the transfer was cut', async () => {
    const root = folder();
    put();
    hub.failNext(/GET \/lfs/, { kind: 'cut', after: 3000 }, { kind: 'reply', status: 502 });
    expect((await run(root)).rows).toMatchObject([{ outcome: 'registered' }]);
    expect(downloads()[0]).toBeUndefined();
  });

  // A14: right bytes of another artifact.
  it('is refused when it holds another bucket than the index says', async () => {
    const root = folder();
    put(
      filesOf(all, (index) => {
        index.artifacts = [{ ...index.artifacts[1], length: 64 }];
        return index;
      }),
    );
    expect(await codeOf(() => run(root))).toBe('ARCHIVE_OTHER');
    expect(await leftovers(root)).toEqual([]);
  });

  it('is refused when the index promises another tree', async () => {
    const root = folder();
    put(
      filesOf(all, (index) => {
        for (const entry of index.artifacts) entry.artifact_sha256 = 'a'.repeat(64);
        return index;
      }),
    );
    expect(await codeOf(() => run(root))).toBe('TREE_MISMATCH');
  });

  it('leaves staging to the next one when the user stops it', async () => {
    const root = folder();
    put();
    const controller = new AbortController();
    hub.before(/GET \/lfs/, () => controller.abort(new InterruptedError('SIGINT')));
    hub.failNext(/GET \/lfs/, { kind: 'stall', after: 10 });
    expect(await codeOf(() => run(root, {}, { signal: controller.signal }))).toBe('INTERRUPTED');
    await run(root);
    expect((await treeOf(root)).filter((path) => /staging\/./.test(path))).toEqual([]);
  });
});

// F05, F21: the cache.
describe('offline', () => {
  const offline = { offline: true };

  it('registers from the cache without a socket', async () => {
    const root = folder();
    put();
    await run(root);
    await rm(join(root, 'artifacts'), { recursive: true });
    hub.arrivals.length = 0;
    expect((await run(root, {}, offline)).rows).toMatchObject([{ outcome: 'registered' }]);
    expect(hub.log()).toEqual([]);
  });

  it('is told when the cache lacks the index or an archive, and nothing is deleted', async () => {
    const root = folder();
    put();
    expect(await codeOf(() => run(root, {}, offline))).toBe('OFFLINE');
    await run(root);
    const before = await treeOf(join(root, 'hub'));
    expect(await codeOf(() => run(root, { buckets: [96] }, offline))).toBe('OFFLINE');
    expect(await treeOf(join(root, 'hub'))).toEqual(before);
    expect(hub.log()).not.toEqual([]);
  });

  it('does not trust a damaged archive in the cache; online it is repaired', async () => {
    const root = folder();
    const { sha } = put();
    await run(root);
    await rm(join(root, 'artifacts'), { recursive: true });
    const { path, bytes } = all[0]!.entry;
    const cached = join(root, 'hub/models--owner--prebuilt/snapshots', sha, path);
    await writeFile(cached, Buffer.alloc(bytes, 'x'));
    expect(await codeOf(() => run(root, {}, offline))).toBe('OFFLINE');
    expect((await run(root)).rows).toMatchObject([{ outcome: 'registered' }]);
    expect(await readFile(cached)).toEqual(all[0]!.bytes);
  });
});

describe('an index', () => {
  const swap = (change: (index: Loose) => unknown) => put(filesOf(all, change));

  it.each<[string, string, (index: Loose) => unknown]>([
    ['INDEX_NEWER', 'of a later version', (index) => ({ ...index, format_version: 2 })],
    ['INDEX_INVALID', 'that is no index', () => []],
    [
      'INDEX_INVALID',
      'with a path twice',
      (index) => ({ ...index, artifacts: [index.artifacts[0], index.artifacts[0]] }),
    ],
    ['INDEX_INVALID', 'that is not JSON', () => '{"format"'],
    [
      'INDEX_AMBIGUOUS',
      'with two archives of one bucket',
      (index) => ({
        ...index,
        artifacts: [index.artifacts[0], { ...index.artifacts[0], path: 'other.tar.gz' }],
      }),
    ],
    [
      'INDEX_STALE',
      'that names a missing file',
      (index) => ({
        ...index,
        artifacts: [{ ...index.artifacts[0], path: 'missing.tar.gz' }],
      }),
    ],
    // F12: the file was replaced under the path that the index names.
    [
      'INDEX_STALE',
      'of other bytes than the commit has',
      (index) => ({
        ...index,
        artifacts: [{ ...index.artifacts[0], archive_sha256: 'b'.repeat(64) }],
      }),
    ],
    [
      'ARTIFACT_MISSING',
      'for another kind of machine',
      (index) => ({
        ...index,
        artifacts: index.artifacts.map((entry: Loose) => ({
          ...entry,
          platform: { ...entry.platform, soc: 'Apple M4 Max' },
        })),
      }),
    ],
  ])('is refused with %s: one %s', async (code, _name, change) => {
    const root = folder();
    swap(change);
    expect(await codeOf(() => run(root))).toBe(code);
    expect(downloads()).toEqual([]);
    expect(await leftovers(root)).toEqual([]);
  });

  it('of another profile is told before anything is downloaded', async () => {
    swap((index) => {
      for (const entry of index.artifacts)
        entry.platform = { soc: 'Apple M4 Max', macos: '27.0', macos_build: null, coremltools: '9.0' };
      return index;
    });
    const profile = 'apple-m4-max-macos27-coremltools9.0';
    expect(await codeOf(() => run(folder(), { profile }))).toBe('PROFILE_MISMATCH');
    expect(downloads()).toEqual([]);
  });

  it('of an ambiguous bucket is settled by a profile', async () => {
    swap((index) => {
      const { platform, ...entry } = index.artifacts[0];
      const other = { ...entry, path: 'other.tar.gz', platform: { ...platform, coremltools: '8.3' } };
      return { ...index, artifacts: [{ platform, ...entry }, other] };
    });
    const root = folder();
    expect(await codeOf(() => run(root))).toBe('INDEX_AMBIGUOUS');
    expect((await run(root, { profile: 'portable-coremltools9.0' })).rows).toMatchObject([{ outcome: 'registered' }]);
  });

  it('older than the last one seen is refused unless it is asked for', async () => {
    const root = folder();
    const at = (generation: number | undefined) => swap((index) => ({ ...index, generation }));
    at(7);
    await run(root);
    const { sha } = at(6);
    expect(await codeOf(() => run(root, { buckets: [96] }))).toBe('INDEX_ROLLBACK');
    at(undefined);
    expect(await codeOf(() => run(root, { buckets: [96] }))).toBe('INDEX_ROLLBACK');
    expect((await run(root, { buckets: [96], revision: sha })).rows).toMatchObject([{ outcome: 'registered' }]);
    expect((await run(root, { buckets: [96], force: true, allowRollback: true })).rows).toMatchObject([
      { outcome: 'registered' },
    ]);
    at(8);
    await run(root, { buckets: [96], force: true });
  });

  it('that is larger than any index is refused by its listed size', async () => {
    const root = folder();
    put();
    hub.failNext(/GET .*tree/, {
      kind: 'reply',
      status: 200,
      body: JSON.stringify([{ type: 'file', path: 'index.json', size: 1 << 30, oid: '0'.repeat(40) }]),
    });
    expect(await codeOf(() => run(root))).toBe('INDEX_TOO_LARGE');
    expect(hub.log().filter((line) => line.includes('/resolve/'))).toEqual([]);
  });

  it('is missing where nothing was published', async () => {
    put({ 'README.md': 'nothing' });
    await mkdir(join(folder(), 'x'));
    expect(await codeOf(() => run(folder()))).toBe('INDEX_MISSING');
  });
});
