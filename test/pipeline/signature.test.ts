import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type FetchOrder, fetchArtifacts } from '../../pipeline/fetch.js';
import { publishArtifacts } from '../../pipeline/publish.js';
import type { PublishOrder } from '../../pipeline/publish-plan.js';
import { artifactFolder } from '../../registry/paths.js';
import { readArtifact } from '../../registry/read.js';
import { SigningError } from '../../registry/signature/errors.js';
import { bundlePath } from '../../registry/signature/file.js';
import { statementOf } from '../../registry/signature/statement.js';
import type { SignatureStatement } from '../../schemas/generated/types.js';
import type { NewFile } from '../hub/repos.js';
import { TestHub } from '../hub/server.js';
import { registerLayaTiny } from '../registered.js';
import { KEY, writeArtifact } from '../registry/artifact.js';
import { SIGNER, TestSigstore } from '../sigstore/server.js';
import { codeOf, keptFolder, treeOf, workspace } from '../workspace.js';
import { fetchOrder, filesOf, hubContext, type Prebuilt, prebuiltFrom, quickHub, REPO } from './prebuilt.js';

const folder = workspace();
const shop = keptFolder();
let hub: TestHub;
let sigstore: TestSigstore;
let late: TestSigstore;
let all: Prebuilt[];
let statement: SignatureStatement;
let bundle: string;
let rootFile: string;

beforeAll(async () => {
  hub = await TestHub.start();
  sigstore = await TestSigstore.start();
  late = await TestSigstore.start(new Date(Date.now() - 3600_000));
  await registerLayaTiny(shop(), [64]);
  all = await prebuiltFrom(shop(), [64]);
  const { entry } = all[0]!;
  const { manifest } = await readArtifact(KEY, artifactFolder(shop(), KEY));
  statement = statementOf(manifest, { sha256: entry.archive_sha256 });
  bundle = await sigstore.sign(statement);
  rootFile = join(shop(), 'trusted_root.json');
  await writeFile(rootFile, sigstore.rootText);
}, 300_000);
afterAll(async () => {
  await hub.close();
  await sigstore.close();
  await late.close();
});
afterEach(() => hub.reset());

const bundleAt = (): string => bundlePath(all[0]!.entry.path);
const filesWith = (text: NewFile | undefined): Record<string, NewFile> => ({
  ...filesOf(all),
  ...(text === undefined ? {} : { [bundleAt()]: text }),
});
const put = (text: NewFile | undefined) => hub.repository(REPO).commit(filesWith(text));
const trust = (root: string, identities = [SIGNER], file = rootFile) => ({
  policy: { identities },
  root: { file, cache: root, offline: false },
});

async function run(root: string, change: Partial<FetchOrder> = {}, more: Parameters<typeof hubContext>[2] = {}) {
  const context = hubContext(hub, root, more);
  return fetchArtifacts(fetchOrder({ trust: trust(root), ...change }), await quickHub(context), context);
}

/** A refused fetch: its code; nothing is registered, nothing is left in staging, no byte of an archive came. */
async function refused(root: string, change: Partial<FetchOrder> = {}): Promise<string> {
  const code = await codeOf(() => run(root, change));
  const left = (await treeOf(root)).filter((path) => path.startsWith('artifacts/'));
  expect(left.filter((path) => !/^artifacts\/(\.locks\/.*|\.staging\/)?$/.test(path))).toEqual([]);
  return code;
}
/** A right bundle, by a Sigstore that the trust root does not name. */
async function strangeBundle(): Promise<string> {
  const other = await TestSigstore.start();
  try {
    return await other.sign(statement);
  } finally {
    await other.close();
  }
}
/** A right bundle of another archive. */
async function otherBundle(): Promise<string> {
  const manifest = await writeArtifact(join(folder(), 'other'));
  return sigstore.sign(statementOf(manifest, { sha256: 'c'.repeat(64) }));
}
const downloads = () => hub.arrivals.filter(({ at }) => at === 'content').length;

describe('fetch with a required signature', () => {
  it('registers what is signed by whom is trusted, and notes who it was', async () => {
    const root = folder();
    put(bundle);
    const { rows } = await run(root);
    expect(rows).toMatchObject([{ outcome: 'registered', signature: SIGNER }]);
    const text = await readFile(join(artifactFolder(root, KEY), 'manifest.json'), 'utf8');
    expect(JSON.parse(text).imported.signature).toMatchObject({ ...SIGNER, log_index: expect.any(String) });
    hub.arrivals.length = 0;
    expect((await run(root)).rows).toMatchObject([{ outcome: 'already-registered', signature: SIGNER }]);
    expect(hub.log()).toEqual([]);
  });

  it('works without a socket once everything is in the cache', async () => {
    const root = folder();
    put(bundle);
    await run(root);
    const offline = { env: { HF_HUB_OFFLINE: '1' }, offline: true };
    hub.arrivals.length = 0;
    const { rows } = await run(root, { force: true }, offline);
    expect(rows).toMatchObject([{ outcome: 'registered', signature: SIGNER }]);
    expect(hub.log()).toEqual([]);
  });

  it('fetches again what is registered without a trusted signature', async () => {
    const root = folder();
    put(bundle);
    expect((await run(root, { trust: undefined as never })).rows).toMatchObject([{ outcome: 'registered' }]);
    const stranger = { ...SIGNER, identity: 'https://elsewhere.example/x' };
    expect(await codeOf(() => run(root, { trust: trust(root, [stranger]) }))).toBe('SIGNATURE_IDENTITY');
    expect((await run(root)).rows).toMatchObject([{ outcome: 'registered', signature: SIGNER }]);
  });

  it.each<[string, string, () => NewFile | Promise<NewFile> | undefined]>([
    ['SIGNATURE_MISSING', 'no bundle', () => undefined],
    ['STATEMENT_MISMATCH', 'the bundle of another archive', otherBundle],
    ['SIGNATURE_IDENTITY', 'a bundle of someone else', () => sigstore.sign(statement, { sub: 'https://x.example' })],
    ['SIGNATURE_IDENTITY', 'another issuer', () => sigstore.sign(statement, { iss: 'https://x.example' })],
    ['SIGNATURE_INVALID', 'a bundle of another Sigstore', strangeBundle],
    ['SIGNATURE_INVALID', 'half a bundle', () => bundle.slice(0, bundle.length >> 1)],
    ['SIGNATURE_INVALID', 'no JSON', () => Buffer.from([0, 1, 2, 255])],
    ['SIGNATURE_INVALID', 'a huge file', () => `${bundle}${' '.repeat(2 << 20)}`],
    [
      'SIGNATURE_INVALID',
      'a tampered statement',
      () => {
        const value = JSON.parse(bundle);
        const text = Buffer.from(value.dsseEnvelope.payload, 'base64').toString().replace('"rows":', '"rows":9');
        value.dsseEnvelope.payload = Buffer.from(text).toString('base64');
        return JSON.stringify(value);
      },
    ],
    [
      'STATEMENT_MISMATCH',
      'a wrong digest',
      () => {
        const [archive, tree] = statement.subject;
        const other = { ...archive, digest: { sha256: 'b'.repeat(64) } };
        return sigstore.sign({ ...statement, subject: [other, tree] });
      },
    ],
    [
      'STATEMENT_INVALID',
      'another predicate',
      () => sigstore.sign({ ...statement, predicateType: 'https://x.example' } as never),
    ],
  ])('gives %s for %s, before a byte of an archive', async (code, _name, make) => {
    put(await make());
    expect(await refused(folder())).toBe(code);
    expect(downloads()).toBe(0);
  });

  it('gives SIGNATURE_EXPIRED for a certificate that had ended', async () => {
    put(await late.sign(statement));
    const root = folder();
    const file = join(root, 'root.json');
    await writeFile(file, late.rootText);
    expect(await refused(root, { trust: trust(root, [SIGNER], file) })).toBe('SIGNATURE_EXPIRED');
    expect(downloads()).toBe(0);
  });

  it('gives STATEMENT_MISMATCH for figures that the archive does not have', async () => {
    const { predicate } = statement;
    const evidence = { ...predicate.laya_evidence, parity: { ...predicate.laya_evidence.parity, prob_max_abs: 0 } };
    put(await sigstore.sign({ ...statement, predicate: { ...predicate, laya_evidence: evidence } }));
    expect(await refused(folder())).toBe('STATEMENT_MISMATCH');
  });

  it('gives the code of a trust root that is not there', async () => {
    put(bundle);
    const root = folder();
    expect(await refused(root, { trust: trust(root, [SIGNER], join(root, 'none.json')) })).toBe('TRUST_ROOT_MISSING');
    const { policy } = trust(root);
    expect(await refused(root, { trust: { policy, root: { cache: root, offline: true } } })).toBe('TRUST_ROOT_MISSING');
    expect(downloads()).toBe(0);
  });

  it('does not take a bundle of other bytes than the commit names, nor from the cache', async () => {
    const root = folder();
    const { sha } = put(bundle);
    hub.failNext(new RegExp(`GET .*${sha}.*sigstore`), { kind: 'reply', status: 200, body: await otherBundle() });
    expect(await refused(root)).toMatch(/^HUB_/);
    await run(root);
    const cached = join(root, 'hub/models--owner--prebuilt/snapshots', sha, bundleAt());
    await writeFile(cached, await otherBundle());
    expect((await run(root, { force: true })).rows).toMatchObject([{ outcome: 'registered' }]);
  });
});

describe('publish with signatures', () => {
  const TOKEN = 'hf_SecretSecretSecretSecretSecret';
  const sign = (statement: SignatureStatement) => sigstore.sign(statement);
  const signed = (): string[] => sigstore.log.filter((line) => line.includes('signingCert'));
  afterEach(() => {
    sigstore.log.length = 0;
  });

  async function store(text = 'program(1.3)\n'): Promise<string> {
    const root = folder();
    const files = { 'coremldata.bin': 'd', 'metadata.json': '[]', 'model.mil': text, 'weights/weight.bin': 'w' };
    await writeArtifact(artifactFolder(root, KEY), files);
    return root;
  }
  async function publish(root: string, change: Partial<PublishOrder> = {}) {
    const context = hubContext(hub, root, { env: { HF_TOKEN: TOKEN } });
    const base = { repo: REPO, branch: 'main', keys: [KEY], create: true, isPrivate: false, dryRun: false };
    return publishArtifacts({ ...base, ...change }, await quickHub(context), context);
  }
  const head = () => hub.repository(REPO).find('main')!.files;
  const bundleNow = (path: string) => head().get(bundlePath(path))?.bytes.toString();

  it('puts archive, bundle and index into one commit, and reads all of it back', async () => {
    const report = await publish(await store(), { sign });
    expect(report).toMatchObject({ outcome: 'published', rows: [{ action: 'add', signature: 'add' }] });
    const [row] = report.rows;
    expect([...head().keys()].sort()).toEqual(['.gitattributes', 'index.json', row!.path, bundlePath(row!.path)]);
    expect(hub.repository(REPO).history('main')).toHaveLength(2);
    const payload = JSON.parse(bundleNow(row!.path)!).dsseEnvelope.payload;
    const stated = JSON.parse(Buffer.from(payload, 'base64').toString());
    expect(stated.subject[0].digest.sha256).toBe(row!.archive_sha256);
  });

  it('does not sign again what is signed and unchanged', async () => {
    const root = await store();
    const { rows } = await publish(root, { sign });
    const before = bundleNow(rows[0]!.path);
    const unchanged = { outcome: 'unchanged', rows: [{ action: 'keep', signature: 'keep' }] };
    expect(await publish(root, { sign })).toMatchObject(unchanged);
    expect(await publish(root)).toMatchObject(unchanged);
    expect([signed().length, bundleNow(rows[0]!.path)]).toEqual([1, before]);
  });

  it('adds the signature of what was published without, and replaces one that is about another archive', async () => {
    const root = await store();
    const { rows } = await publish(root);
    expect(rows).toMatchObject([{ signature: null }]);
    const added = { outcome: 'published', rows: [{ action: 'keep', signature: 'add' }] };
    expect(await publish(root, { sign })).toMatchObject(added);
    const right = bundleNow(rows[0]!.path);
    const files = Object.fromEntries(head());
    hub.repository(REPO).commit({ ...files, [bundlePath(rows[0]!.path)]: bundle });
    expect(await publish(root, { sign })).toMatchObject(added);
    expect(bundleNow(rows[0]!.path)).not.toBe(bundle);
    expect(bundleNow(rows[0]!.path)?.length).toBeGreaterThan(right!.length - 200);
  });

  it('removes the signature of an archive that it replaces without signing', async () => {
    const { rows } = await publish(await store(), { sign });
    const report = await publish(await store('program(1.3) // other\n'));
    expect(report).toMatchObject({ outcome: 'published', rows: [{ action: 'replace', signature: 'remove' }] });
    expect(head().has(bundlePath(rows[0]!.path))).toBe(false);
  });

  it('signs once, however often the commit has to be made', async () => {
    const root = await store();
    await publish(root, { dryRun: true, sign });
    expect(signed()).toEqual([]);
    hub.repository(REPO).commit({ '.gitattributes': '' });
    const at = /POST .*\/commit\//;
    hub.failNext(at, { kind: 'refuse', status: 412 }, { kind: 'refuse', status: 503 }, { kind: 'cut' });
    expect(await publish(root, { sign })).toMatchObject({ outcome: 'published', rows: [{ signature: 'keep' }] });
    expect(signed()).toHaveLength(1);
  });

  it('uploads nothing when it can not sign', async () => {
    hub.repository(REPO).commit({ '.gitattributes': '' });
    const fail = async () => {
      throw new SigningError('SIGNING_FAILED', 'no');
    };
    const root = await store();
    expect(await codeOf(() => publish(root, { sign: fail }))).toBe('SIGNING_FAILED');
    expect(hub.log().filter((line) => !line.startsWith('GET'))).toEqual([]);
    expect((await treeOf(root)).filter((path) => /staging\/./.test(path))).toEqual([]);
  });

  it('tells when the hub does not keep the bundle as it was sent', async () => {
    hub.repository(REPO).commit({ '.gitattributes': '' });
    const root = await store();
    const at = /POST .*\/commit\//;
    const wrong = JSON.stringify({ success: true, commitOid: hub.repository(REPO).find('main')!.sha });
    hub.failNext(at, { kind: 'reply', status: 200, body: wrong });
    const error = await publish(root, { sign }).catch((one: unknown) => one);
    expect(error).toMatchObject({ code: 'PUBLISH_UNVERIFIED' });
    expect(inspect(error)).toContain('sigstore.json');
  });
});
