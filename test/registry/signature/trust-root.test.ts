import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readPolicy } from '../../../registry/signature/policy.js';
import { statementOf } from '../../../registry/signature/statement.js';
import { loadTrustRoot } from '../../../registry/signature/trust-root.js';
import { trustMirror } from '../../../registry/signature/trust-source.js';
import { verifyBundle } from '../../../registry/signature/verify.js';
import { SIGNER, TestSigstore } from '../../sigstore/server.js';
import { startTuf, type TestTuf } from '../../sigstore/tuf.js';
import { codeOf, treeOf, workspace } from '../../workspace.js';
import { writeArtifact } from '../artifact.js';

const folder = workspace();
let sigstore: TestSigstore;
let tuf: TestTuf;
beforeAll(async () => {
  sigstore = await TestSigstore.start();
  tuf = await startTuf('trusted_root.json', sigstore.rootText);
});
afterAll(async () => {
  await sigstore.close();
  await tuf.close();
});

const file = async (text: string): Promise<string> => {
  const path = join(folder(), 'file.json');
  await writeFile(path, text);
  return path;
};
const mirror = async (url = tuf.url) => ({ url, root: await file(tuf.root) });

describe('the trust root', () => {
  it('is what a file says', async () => {
    const root = await loadTrustRoot({ file: await file(sigstore.rootText), cache: folder(), offline: true });
    const statement = statementOf(await writeArtifact(folder()), { sha256: 'a'.repeat(64) });
    const bundle = Buffer.from(await sigstore.sign(statement));
    expect(verifyBundle(bundle, root, { identities: [SIGNER] }, 'x').signer).toMatchObject(SIGNER);
  });

  it('may be the public one, as the TUF client carries it', async () => {
    const seeds = createRequire(import.meta.url)('@sigstore/tuf/seeds.json') as Record<string, { targets: object }>;
    const [{ targets }] = Object.values(seeds) as [{ targets: Record<string, string> }];
    const text = Buffer.from(targets['trusted_root.json']!, 'base64').toString();
    const root = await loadTrustRoot({ file: await file(text), cache: folder(), offline: true });
    expect(root.certificateAuthorities.length).toBeGreaterThan(0);
    const bundle = Buffer.from(
      await sigstore.sign(statementOf(await writeArtifact(folder()), { sha256: 'a'.repeat(64) })),
    );
    expect(await codeOf(() => verifyBundle(bundle, root, undefined, 'x'))).toBe('SIGNATURE_INVALID');
  });

  it('is brought by TUF, then taken from the cache: the same one, without a socket', async () => {
    const cache = folder();
    const source = { mirror: await mirror(), cache };
    const root = await loadTrustRoot({ ...source, offline: false });
    expect(tuf.log).toContain('/targets/trusted_root.json');
    tuf.log.length = 0;
    expect(await loadTrustRoot({ ...source, offline: true })).toEqual(root);
    // What was brought is good until its metadata end.
    expect(await loadTrustRoot({ ...source, offline: false })).toEqual(root);
    expect(tuf.log).toEqual([]);
    expect((await treeOf(cache)).every((path) => path.startsWith('trust/'))).toBe(true);
  });

  it('is brought again where a killed process left half of it in the cache', async () => {
    const source = { mirror: await mirror(), cache: folder(), offline: false };
    const root = await loadTrustRoot(source);
    const files = (await treeOf(source.cache)).filter((path) => /\/tuf\/.*json$/.test(path));
    expect(files).toHaveLength(5);
    for (const file of files) {
      const path = join(source.cache, file);
      await writeFile(path, (await readFile(path, 'utf8')).slice(0, 40));
      expect(await loadTrustRoot(source)).toEqual(root);
    }
  });

  it.each<[string, string, () => Promise<Parameters<typeof loadTrustRoot>[0]>]>([
    ['TRUST_ROOT_MISSING', 'offline and not in the cache', async () => ({ cache: folder(), offline: true })],
    ['TRUST_ROOT_MISSING', 'no file', async () => ({ file: join(folder(), 'x'), cache: folder(), offline: false })],
    ['TRUST_ROOT_INVALID', 'no JSON', async () => ({ file: await file('<html>'), cache: folder(), offline: false })],
    ['TRUST_ROOT_INVALID', 'empty', async () => ({ file: await file('{}'), cache: folder(), offline: false })],
    ['TRUST_ROOT_INVALID', 'a folder', async () => ({ file: folder(), cache: folder(), offline: false })],
    [
      'TRUST_ROOT_INVALID',
      'of another shape',
      async () => ({
        file: await file('{"certificateAuthorities": [1], "tlogs": {}}'),
        cache: folder(),
        offline: false,
      }),
    ],
    [
      'TRUST_ROOT_UNAVAILABLE',
      'of nobody that answers',
      async () => ({ mirror: await mirror(`${tuf.url}/nowhere`), cache: folder(), offline: false }),
    ],
    [
      'TRUST_ROOT_UNAVAILABLE',
      'signed by others than the root.json names',
      async () => {
        const other = await startTuf('trusted_root.json', sigstore.rootText);
        const root = await file(other.root);
        await other.close();
        return { mirror: { url: tuf.url, root }, cache: folder(), offline: false };
      },
    ],
  ])('gives %s when it is %s', async (code, _name, source) => {
    expect(await codeOf(async () => loadTrustRoot(await source()))).toBe(code);
  });

  it('that was kept is checked when it is read', async () => {
    const source = { mirror: await mirror(), cache: folder() };
    await loadTrustRoot({ ...source, offline: false });
    const [kept] = (await treeOf(source.cache)).filter((path) => /^trust\/[^/]*\/trusted_root.json$/.test(path));
    await writeFile(join(source.cache, kept!), (await readFile(join(source.cache, kept!), 'utf8')).slice(0, 99));
    expect(await codeOf(() => loadTrustRoot({ ...source, offline: true }))).toBe('TRUST_ROOT_INVALID');
  });

  it('of a private Sigstore is named whole or not at all', async () => {
    expect(trustMirror({})).toBeUndefined();
    const named = { SIGSTORE_TUF_URL: 'https://tuf.example/', SIGSTORE_TUF_ROOT: 'root.json' };
    expect(trustMirror(named)).toEqual({ url: 'https://tuf.example', root: 'root.json' });
    for (const half of [
      { ...named, SIGSTORE_TUF_ROOT: '' },
      { ...named, SIGSTORE_TUF_URL: 'file:///x' },
    ])
      expect(await codeOf(() => trustMirror(half))).toBe('TRUST_ROOT_INVALID');
  });
});

describe('a policy', () => {
  it('is a list of identities with their issuers', async () => {
    expect(await readPolicy(await file(JSON.stringify({ identities: [SIGNER] })))).toMatchObject({
      identities: [SIGNER],
    });
  });

  it.each([
    ['nobody', '{"identities": []}'],
    ['an identity without issuer', '{"identities": [{"identity": "x"}]}'],
    ['an empty name', '{"identities": [{"identity": "", "issuer": "x"}]}'],
    ['a field that it does not know', `{"identities": [${JSON.stringify({ ...SIGNER, except: 'x' })}]}`],
    ['a misspelt list', `{"identitys": [${JSON.stringify(SIGNER)}]}`],
    ['two lists', '{"identities": [{"identity": "a", "issuer": "b"}], "identities": []}'],
    ['no JSON', 'identity: x'],
  ])('with %s is refused', async (_name, text) => {
    expect(await codeOf(async () => readPolicy(await file(text)))).toBe('TRUST_POLICY_INVALID');
  });

  it('that is not there is refused', async () => {
    expect(await codeOf(() => readPolicy(join(folder(), 'none.json')))).toBe('TRUST_POLICY_INVALID');
  });
});
