import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { artifactFolder } from '../../registry/paths.js';
import { bundlePath } from '../../registry/signature/file.js';
import { TestHub } from '../hub/server.js';
import { registerLayaTiny } from '../registered.js';
import { KEY, writeArtifact } from '../registry/artifact.js';
import { identityToken, SIGNER, TestSigstore } from '../sigstore/server.js';
import { startTuf } from '../sigstore/tuf.js';
import { keptFolder, treeOf, workspace } from '../workspace.js';
import { type CliRun, cli } from './cli.js';
import { REPO } from './prebuilt.js';

const folder = workspace();
const shop = keptFolder();
const desk = keptFolder();
const TOKEN = 'hf_SecretSecretSecretSecretSecret';
const WHO = ['--identity', SIGNER.identity, '--issuer', SIGNER.issuer];
let hub: TestHub;
let sigstore: TestSigstore;
/** On the desk: what was published, its bundle, the trust root, a policy. */
let archive: string;
let rootFile: string;
let policyFile: string;
let published: { commit: string; rows: { path: string; archive_sha256: string; signature: string }[] };

beforeAll(async () => {
  hub = await TestHub.start();
  sigstore = await TestSigstore.start();
  rootFile = join(desk(), 'root.json');
  policyFile = join(desk(), 'policy.json');
  await writeFile(rootFile, sigstore.rootText);
  await writeFile(policyFile, JSON.stringify({ identities: [{ identity: 'x', issuer: 'y' }, SIGNER] }));
  await registerLayaTiny(shop(), [64]);
  const done = await run(
    shop(),
    ['publish', 'laya-tiny', '--repo', REPO, '--create', '--sign', '--json'],
    sigstore.env,
  );
  published = JSON.parse(done.stdout);
  const { path } = published.rows[0]!;
  archive = join(desk(), 'laya-tiny-L64.tar.gz');
  const files = hub.repository(REPO).find('main')!.files;
  await writeFile(archive, files.get(path)!.bytes);
  await writeFile(bundlePath(archive), files.get(bundlePath(path))!.bytes);
}, 300_000);
afterAll(async () => {
  await hub.close();
  await sigstore.close();
});
afterEach(() => {
  sigstore.failing.clear();
  sigstore.ciAnswer = undefined;
});

/** Runs a command on a root; its output and every file below the root must be free of tokens (fault F17). */
async function run(root: string, args: readonly string[], env: Record<string, string> = {}): Promise<CliRun> {
  const cache = { LAYA_APPLE_CACHE: root, HF_HUB_CACHE: join(root, 'hub'), HF_ENDPOINT: hub.url, LAYA_DEBUG: '1' };
  const done = await cli(args, { ...cache, HF_TOKEN: TOKEN, LAYA_APPLE_PREBUILT_REPO: '', ...env });
  const files = await Promise.all(
    (await treeOf(root)).filter((path) => !path.endsWith('/')).map((path) => readFile(join(root, path), 'latin1')),
  );
  for (const text of [done.stdout, done.stderr, ...files]) expect(text.includes('SecretSecret')).toBe(false);
  return done;
}
const errorOf = ({ stderr }: CliRun): string => JSON.parse(stderr.trim().split('\n').at(-1)!).code;
const leftovers = async (root: string) =>
  (await treeOf(root)).filter((path) => /^artifacts\/(?!\.locks\/|\.staging\/$)./.test(path));

describe('publish --sign and fetch --require-signature', () => {
  it('bring an artifact to whoever trusts the signer, and to nobody else', async () => {
    expect(published).toMatchObject({ outcome: 'published', rows: [{ signature: 'add' }] });
    const fetch = ['fetch', 'laya-tiny', '--length', '64', '--repo', REPO, '--require-signature'];
    const trusted = ['--trusted-root', rootFile];
    const root = folder();
    const wrong = [...fetch, ...trusted, '--identity', `${SIGNER.identity}x`, '--issuer', SIGNER.issuer, '--json'];
    const refused = await run(root, wrong);
    expect([errorOf(refused), refused.code, refused.stdout]).toEqual(['SIGNATURE_IDENTITY', 1, '']);
    expect(await leftovers(root)).toEqual([]);
    const done = await run(root, [...fetch, ...trusted, ...WHO, '--json']);
    expect(JSON.parse(done.stdout)).toMatchObject([{ rows: [{ outcome: 'registered', signature: SIGNER }] }]);
    const again = await run(root, [...fetch, ...trusted, '--policy', policyFile, '--offline']);
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('there already')]);
    const { stdout } = await run(root, ['provenance', 'laya-tiny']);
    expect(stdout).toContain(`; signed by ${SIGNER.identity} (${SIGNER.issuer})`);
  });
});

describe('verify-provenance', () => {
  const verify = (...more: string[]) => run(folder(), ['verify-provenance', archive, ...more]);

  it('tells who signed and what is stated, in 80 columns', async () => {
    const done = await verify('--trusted-root', rootFile, ...WHO);
    expect(done).toMatchObject({ code: 0, stderr: '' });
    const lines = done.stdout.trimEnd().split('\n');
    const longest = lines.filter((line) => !line.includes(archive)).map((line) => line.length);
    expect(Math.max(...longest)).toBeLessThanOrEqual(80);
    const joined = lines.map((line) => line.trim()).join('');
    for (const told of [
      SIGNER.identity,
      SIGNER.issuer,
      published.rows[0]!.archive_sha256,
      'laya-tiny L64',
      'log index',
    ])
      expect(joined).toContain(told);
    for (const label of ['source', 'weights', 'converter', 'compiler', 'builder', 'evidence', 'placement', 'parity'])
      expect(done.stdout).toMatch(new RegExp(`^  ${label} +\\S`, 'm'));
    expect(done.stdout).toContain('trusted identity');
  });

  it('says that anyone can have signed where no identity is required', async () => {
    const done = await verify('--trusted-root', rootFile);
    expect([done.code, done.stdout]).toEqual([0, expect.stringContaining('No identity was required')]);
  });

  it('prints the whole statement as JSON', async () => {
    const done = await verify('--trusted-root', rootFile, '--policy', policyFile, '--json');
    const { archive_sha256 } = published.rows[0]!;
    expect(JSON.parse(done.stdout)).toMatchObject({
      archive_sha256,
      identity_required: true,
      signer: SIGNER,
      statement: { subject: [{ digest: { sha256: archive_sha256 } }, {}] },
    });
  });

  it('brings the trust root once, then works without a network', async () => {
    const root = folder();
    const tuf = await startTuf('trusted_root.json', sigstore.rootText);
    const start = join(root, 'start.json');
    await writeFile(start, tuf.root);
    const env = { SIGSTORE_TUF_URL: tuf.url, SIGSTORE_TUF_ROOT: start };
    const args = ['verify-provenance', archive, ...WHO];
    const early = await run(root, [...args, '--offline', '--json'], env);
    expect([early.code, errorOf(early), tuf.log]).toEqual([1, 'TRUST_ROOT_MISSING', []]);
    expect((await run(root, args, env)).code).toBe(0);
    await tuf.close();
    expect((await run(root, [...args, '--offline'], env)).code).toBe(0);
    expect((await run(root, args, env)).code).toBe(0);
  });

  it('refuses an archive of other bytes, and one that is signed for another', async () => {
    const root = folder();
    const other = join(root, 'other.tar.gz');
    const bytes = await readFile(archive);
    bytes[bytes.length >> 1]! ^= 1;
    await writeFile(other, bytes);
    const args = ['verify-provenance', other, '--bundle', bundlePath(archive), '--trusted-root', rootFile, '--json'];
    const broken = await run(root, args);
    expect([broken.code, errorOf(broken)]).toEqual([1, expect.stringMatching(/^(ARCHIVE|TREE)_/)]);
    const second = folder();
    await writeArtifact(artifactFolder(second, KEY));
    expect((await run(second, ['export', 'laya-tiny', '--out', other])).code).toBe(0);
    const swapped = await run(root, args);
    expect([swapped.code, errorOf(swapped)]).toEqual([1, 'STATEMENT_MISMATCH']);
  });
});

describe('Sigstore', () => {
  it.each(['cli', 'commands/predict', 'commands/fetch', 'commands/publish'])(
    'is not loaded by %s itself',
    async (name) => {
      const code = `
      const loaded = () => Object.keys(require.cache).some((path) => path.includes('@sigstore'));
      import('./dist/pipeline/${name}.js').then(() => console.log(loaded()))
        .then(() => import('./dist/registry/signature/verify.js')).then(() => console.log(loaded()));`;
      const { stdout } = await promisify(execFile)(process.execPath, ['-e', code]);
      expect(stdout).toBe('false\ntrue\n');
    },
  );
});

describe('a command that can not do it', () => {
  const publish = ['publish', '--repo', REPO, '--sign'];
  const fetch = ['fetch', 'laya-tiny', '--repo', REPO];
  const about = (...more: string[]) => ['verify-provenance', '@archive', ...more];

  it.each<[string, number, string[], Record<string, string>?]>([
    ['USAGE', 2, [...fetch, '--require-signature']],
    ['USAGE', 2, [...fetch, '--require-signature', '--identity', 'x']],
    ['USAGE', 2, [...fetch, '--require-signature', '--issuer', 'x']],
    ['USAGE', 2, [...fetch, '--require-signature', '--identity', '', '--issuer', 'x']],
    ['USAGE', 2, [...fetch, ...WHO]],
    ['USAGE', 2, [...fetch, '--trusted-root', '@root']],
    ['USAGE', 2, about(...WHO, '--policy', '@policy')],
    ['TRUST_POLICY_INVALID', 1, about('--policy', '@root')],
    ['TRUST_POLICY_INVALID', 1, [...fetch, '--require-signature', '--policy', '/nowhere/policy.json']],
    ['TRUST_ROOT_MISSING', 1, about('--offline')],
    ['TRUST_ROOT_MISSING', 1, about('--trusted-root', '/nowhere/root.json')],
    ['TRUST_ROOT_INVALID', 1, about('--trusted-root', '@policy')],
    ['TRUST_ROOT_UNAVAILABLE', 1, about(), { SIGSTORE_TUF_URL: 'http://127.0.0.1:1', SIGSTORE_TUF_ROOT: '@root' }],
    ['SIGNATURE_MISSING', 1, about('--bundle', '/nowhere/bundle', '--trusted-root', '@root')],
    ['SIGNATURE_INVALID', 1, about('--bundle', '@policy', '--trusted-root', '@root')],
    ['SIGNATURE_IDENTITY', 1, about('--trusted-root', '@root', '--identity', 'x', '--issuer', SIGNER.issuer)],
    ['SIGNATURE_IDENTITY', 1, about('--trusted-root', '@root', '--identity', SIGNER.identity, '--issuer', 'x')],
    ['IDENTITY_TOKEN_MISSING', 1, publish],
    ['IDENTITY_TOKEN_INVALID', 1, publish, { SIGSTORE_ID_TOKEN: 'SecretSecretSecret' }],
    ['SIGNING_ENDPOINT', 1, publish, { SIGSTORE_ID_TOKEN: identityToken(), SIGSTORE_REKOR_URL: 'host' }],
    ['SIGNING_FAILED', 1, publish, { SIGSTORE_ID_TOKEN: identityToken(), SIGSTORE_FULCIO_URL: '@hub' }],
  ])('tells %s with exit code %i: %j', async (code, exit, args, env = {}) => {
    const root = folder();
    await writeArtifact(artifactFolder(root, KEY), undefined, (manifest) => {
      manifest.created_at = '2026-01-02T03:04:05.000Z';
    });
    const names: Record<string, string> = {
      '@archive': archive,
      '@root': rootFile,
      '@policy': policyFile,
      '@hub': hub.url,
    };
    const named = Object.entries(env).map(([name, value]) => [name, names[value] ?? value]);
    hub.arrivals.length = 0;
    const done = await run(root, [...args.map((word) => names[word] ?? word), '--json'], Object.fromEntries(named));
    expect([errorOf(done), done.code, done.stdout]).toEqual([code, exit, '']);
    expect(hub.log().filter((line) => !/^GET|signingCert/.test(line))).toEqual([]);
    expect((await treeOf(root)).filter((path) => /staging\/./.test(path))).toEqual([]);
  });
});
