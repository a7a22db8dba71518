import { readFile, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { publishArtifacts } from '../../pipeline/publish.js';
import type { PublishOrder } from '../../pipeline/publish-plan.js';
import { parseIndex } from '../../registry/index/prebuilt.js';
import { artifactFolder } from '../../registry/paths.js';
import type { PrebuiltIndex } from '../../schemas/generated/types.js';
import { sha256 } from '../hub/repos.js';
import { TestHub } from '../hub/server.js';
import { KEY, writeArtifact } from '../registry/artifact.js';
import { codeOf, treeOf, workspace } from '../workspace.js';
import { hubContext, MODEL, quickHub, REPO } from './prebuilt.js';

const folder = workspace();
let hub: TestHub;
beforeAll(async () => {
  hub = await TestHub.start();
});
afterAll(() => hub.close());
afterEach(() => hub.reset());

const TOKEN = 'hf_SecretSecretSecretSecretSecret';
const PATH = (bucket: number) => `laya-tiny/4defbfb4419a/portable-coremltools9.0/laya-tiny-L${bucket}.tar.gz`;
const COMMIT = /POST .*\/commit\//;

/** A root with artifacts of these buckets; `text` makes their bytes differ. */
async function store(buckets = [64], text = 'program(1.3)\n'): Promise<string> {
  const root = folder();
  for (const bucket of buckets) {
    const files = {
      'coremldata.bin': 'd',
      'metadata.json': '[]',
      'model.mil': text,
      'weights/weight.bin': `L${bucket}`,
    };
    await writeArtifact(artifactFolder(root, { model: MODEL, bucket }), files, ({ artifact }) => {
      artifact.length = bucket;
    });
  }
  return root;
}

async function run(root: string, change: Partial<PublishOrder> = {}, buckets = [64]) {
  const context = hubContext(hub, root, { env: { HF_TOKEN: TOKEN } });
  const keys = buckets.map((bucket) => ({ model: MODEL, bucket }));
  const order = { repo: REPO, branch: 'main', keys, create: false, isPrivate: false, dryRun: false, ...change };
  return publishArtifacts(order, await quickHub(context), context);
}

const prepare = () => hub.repository(REPO).commit({ '.gitattributes': '' });
function indexNow(branch = 'main'): PrebuiltIndex {
  return parseIndex(hub.repository(REPO).find(branch)!.files.get('index.json')!.bytes, 'index');
}
/** Throws unless every commit's index names only files that the same commit has, with their digests (fault F11). */
function checkHistory(): void {
  for (const { files } of hub.repository(REPO).history('main')) {
    const index = files.get('index.json');
    for (const entry of index ? parseIndex(index.bytes, 'index').artifacts : [])
      expect(sha256(files.get(entry.path)!.bytes)).toBe(entry.archive_sha256);
  }
}
const commits = () => hub.log().filter((line) => COMMIT.test(line)).length;

describe('publish', () => {
  it('uploads archives and index as one commit on top of the head, and reads it back', async () => {
    const { sha: parent } = prepare();
    const report = await run(await store([64, 96]), {}, [64, 96]);
    expect(report).toMatchObject({ outcome: 'published', rows: [{ action: 'add' }, { action: 'add' }], dangling: [] });
    const history = hub.repository(REPO).history('main');
    expect(history.map(({ sha }) => sha)).toEqual([report.commit, parent]);
    expect([...history[0]!.files.keys()].sort()).toEqual(['.gitattributes', 'index.json', PATH(64), PATH(96)]);
    expect(indexNow().artifacts.map(({ path }) => path)).toEqual([PATH(64), PATH(96)]);
    checkHistory();
    expect(hub.log().at(-1)).toContain(`/tree/${report.commit}`);
  });

  it('uploads nothing that did not change', async () => {
    prepare();
    const root = await store([64, 96]);
    await run(root, {}, [64]);
    hub.arrivals.length = 0;
    expect(await run(root, {}, [64])).toMatchObject({ outcome: 'unchanged', rows: [{ action: 'keep' }] });
    expect(hub.log().filter((line) => !line.startsWith('GET'))).toEqual([]);
    expect(await run(root, {}, [64, 96])).toMatchObject({ outcome: 'published' });
    expect(hub.log().filter((line) => line.startsWith('PUT'))).toHaveLength(1);
  });

  it('replaces the entry of other bytes, and keeps those of others with their unknown fields', async () => {
    prepare();
    await run(await store([64]));
    const other = { ...indexNow().artifacts[0]!, path: 'laya/x.tar.gz', model: 'laya', signed_by: 'someone' };
    const index = { ...indexNow(), artifacts: [...indexNow().artifacts, other], note: 'kept' };
    const files = Object.fromEntries(hub.repository(REPO).find('main')!.files);
    hub.repository(REPO).commit({ ...files, 'index.json': JSON.stringify(index) });
    const report = await run(await store([64], 'program(1.3) // other\n'));
    expect(report).toMatchObject({ rows: [{ action: 'replace' }], dangling: ['laya/x.tar.gz'] });
    expect(indexNow()).toMatchObject({ note: 'kept', artifacts: [{ path: PATH(64) }, { signed_by: 'someone' }] });
    expect(indexNow().generation).toBeGreaterThan(index.generation!);
  });

  // F12: what was read by an older commit can still be read by it.
  it('leaves older commits as they are', async () => {
    prepare();
    const { commit } = await run(await store([64]));
    const before = hub.repository(REPO).find(commit!)!.files.get(PATH(64))!.sha256;
    await run(await store([64], 'program(1.3) // other\n'));
    expect(hub.repository(REPO).find(commit!)!.files.get(PATH(64))!.sha256).toBe(before);
    expect(hub.repository(REPO).find('main')!.files.get(PATH(64))!.sha256).not.toBe(before);
  });

  it('uploads large files in parts where the hub says so', async () => {
    prepare();
    hub.partSize = 500;
    await run(await store());
    expect(hub.log().filter((line) => line.startsWith('PUT')).length).toBeGreaterThan(1);
    checkHistory();
  });

  it('tells the plan, and does nothing, in a dry run', async () => {
    prepare();
    const report = await run(await store(), { dryRun: true });
    expect(report).toMatchObject({ outcome: 'planned', rows: [{ action: 'add', path: PATH(64) }] });
    expect(hub.log().filter((line) => !line.startsWith('GET'))).toEqual([]);
  });

  it('makes a private repository, a branch and a tag when asked to', async () => {
    const root = await store();
    expect(await codeOf(() => run(root))).toBe('REPO_MISSING');
    expect(await run(root, { create: true, dryRun: true })).toMatchObject({ outcome: 'planned', commit: null });
    expect(hub.repositories.size).toBe(0);
    const report = await run(root, { create: true, isPrivate: true, branch: 'next', tag: 'v1' });
    expect(hub.repository(REPO).isPrivate).toBe(true);
    expect(indexNow('next').artifacts).toHaveLength(1);
    expect(hub.repository(REPO).find('v1')!.sha).toBe(report.commit);
    expect(hub.repository(REPO).find('main')!.files.has('index.json')).toBe(false);
    expect(await codeOf(() => run(root, { branch: 'next', tag: 'v1' }))).toBe('HUB_EXISTS');
  });

  it('does not write over an index that it can not read', async () => {
    hub.repository(REPO).commit({ 'index.json': '{"format": "another"}' });
    expect(await codeOf(async () => run(await store()))).toBe('INDEX_INVALID');
    expect(commits()).toBe(0);
  });
});

// F09, F10, F11: races and errors that leave open what happened.
describe('a commit', () => {
  it('that lost a race is made again on the new head, and no entry is lost', async () => {
    prepare();
    const [one, two] = [await store([64]), await store([96])];
    hub.before(COMMIT, () => {
      hub.repository(REPO).commit({ ...Object.fromEntries(hub.repository(REPO).find('main')!.files), note: 'moved' });
    });
    await run(one, {}, [64]);
    const other = Promise.all([
      run(await store([128]), {}, [128]),
      run(two, {}, [96]),
      run(await store([256]), {}, [256]),
    ]);
    await other;
    expect(
      indexNow()
        .artifacts.map(({ length }) => length)
        .sort((a, b) => a - b),
    ).toEqual([64, 96, 128, 256]);
    checkHistory();
  });

  it('gives up after ten lost races, and publishes nothing', async () => {
    prepare();
    hub.failAlways(COMMIT, { kind: 'refuse', status: 412 });
    expect(await codeOf(async () => run(await store()))).toBe('PUBLISH_RACE');
    expect(commits()).toBe(10);
    expect(hub.repository(REPO).find('main')!.files.has('index.json')).toBe(false);
  });

  it.each([
    ['500', { kind: 'reply', status: 500 } as const],
    ['a cut connection', { kind: 'cut' } as const],
  ])('that landed behind %s is noticed, and not made twice', async (_name, fault) => {
    prepare();
    hub.failNext(COMMIT, fault);
    const report = await run(await store());
    expect(report.outcome).toBe('published');
    expect(report.commit).toBe(hub.repository(REPO).find('main')!.sha);
    expect(commits()).toBe(1);
  });

  it('that did not land behind an error is tried again', async () => {
    prepare();
    hub.failNext(COMMIT, { kind: 'refuse', status: 503 }, { kind: 'refuse', status: 502 });
    expect(await run(await store())).toMatchObject({ outcome: 'published' });
    expect(commits()).toBe(3);
    expect(hub.log().filter((line) => line.startsWith('PUT'))).toHaveLength(1);
  });

  it.each([
    ['HUB_ACCESS', COMMIT, { kind: 'refuse', status: 403 } as const],
    ['HUB_SERVER', /PUT/, { kind: 'refuse', status: 500 } as const],
    ['HUB_SERVER', COMMIT, { kind: 'refuse', status: 500 } as const],
    ['HUB_UPLOAD', /objects\/batch/, { kind: 'reply', status: 200, body: '{"objects": []}' } as const],
    ['HUB_HTML', /objects\/batch/, { kind: 'reply', status: 200, body: '<!doctype html>' } as const],
    ['HUB_NOT_FOUND', /verify/, { kind: 'refuse', status: 404 } as const],
  ])('does not happen after %s at %s, and nothing is left', async (code, at, fault) => {
    prepare();
    const root = await store();
    hub.failAlways(at, fault);
    expect(await codeOf(() => run(root))).toBe(code);
    expect(hub.repository(REPO).history('main')).toHaveLength(1);
    expect((await treeOf(root)).filter((path) => /staging\/./.test(path))).toEqual([]);
  });

  it('that the hub did not keep as it was sent is told', async () => {
    prepare();
    hub.failNext(COMMIT, {
      kind: 'reply',
      status: 200,
      body: JSON.stringify({ success: true, commitOid: hub.repository(REPO).find('main')!.sha }),
    });
    expect(await codeOf(async () => run(await store()))).toBe('PUBLISH_UNVERIFIED');
  });
});

describe('what must not get out', () => {
  // F17: neither the token nor its first characters, whatever happens.
  it('is the token: in no error, report, event or file', async () => {
    const told: unknown[] = [];
    for (const fault of [401, 403, 412, 500].map((status) => ({ kind: 'refuse', status }) as const)) {
      hub.reset();
      prepare();
      const root = await store();
      hub.failAlways(COMMIT, fault);
      await run(root).catch((error) => told.push(inspect(error, { depth: 20, showHidden: true }), error.stack));
      for (const path of await treeOf(root))
        if (!path.endsWith('/')) told.push(await readFile(join(root, path), 'latin1'));
    }
    hub.reset();
    hub.repository(REPO).token = 'another';
    prepare();
    await run(await store()).catch((error) => told.push(inspect(error, { depth: 20, showHidden: true })));
    expect(told.length).toBeGreaterThan(9);
    expect(told.join('\n')).not.toContain(TOKEN.slice(0, 8));
  });

  it('goes to the hub only, not to where large files are stored', async () => {
    prepare();
    await run(await store());
    const stored = hub.arrivals.filter(({ at }) => at === 'content');
    expect(stored.length).toBeGreaterThan(0);
    for (const { headers } of stored) expect(headers.authorization).toBeUndefined();
  });

  // F26.
  it('is a path of this machine', async () => {
    prepare();
    const root = folder();
    await writeArtifact(artifactFolder(root, KEY), undefined, (manifest) => {
      manifest.toolchain = { cache: `${homedir()}/.cache` };
    });
    expect(await codeOf(() => run(root))).toBe('PRIVATE_CONTENT');
    expect(hub.log().filter((line) => !line.startsWith('GET'))).toEqual([]);
  });

  it('is an artifact that is not whole', async () => {
    prepare();
    const root = await store();
    await writeFile(join(artifactFolder(root, KEY), 'model.mlmodelc/weights/weight.bin'), 'rubbish');
    expect(await codeOf(() => run(root))).toBe('TREE_MISMATCH');
    expect(commits()).toBe(0);
  });
});
