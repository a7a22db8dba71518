import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { tokenSource } from '../../../registry/signature/identity.js';
import { signingServices, signStatement } from '../../../registry/signature/sign.js';
import { statementOf } from '../../../registry/signature/statement.js';
import { verifyBundle } from '../../../registry/signature/verify.js';
import type { SignatureStatement } from '../../../schemas/generated/types.js';
import { identityToken, SIGNER, TestSigstore } from '../../sigstore/server.js';
import { codeOf, keptFolder } from '../../workspace.js';
import { writeArtifact } from '../artifact.js';

const folder = keptFolder();
const { signal } = new AbortController();
let sigstore: TestSigstore;
let statement: SignatureStatement;
beforeAll(async () => {
  sigstore = await TestSigstore.start();
  statement = statementOf(await writeArtifact(folder()), { sha256: 'a'.repeat(64) });
});
afterAll(() => sigstore.close());
afterEach(() => {
  sigstore.ciAnswer = undefined;
  sigstore.failing.clear();
  sigstore.log.length = 0;
});

const token = (env: Record<string, string>) => tokenSource(env, (url, init) => fetch(url, init as RequestInit), signal);
const sign = (env: Record<string, string>) => signStatement(statement, signingServices(env), token(env));

describe('signing', () => {
  it('takes the token of the CI job, asked for with the audience of Sigstore', async () => {
    const bundle = Buffer.from(await sign(sigstore.env));
    expect(sigstore.log[0]).toBe('GET /token?job=1&audience=sigstore');
    expect(verifyBundle(bundle, sigstore.root, { identities: [SIGNER] }, 'x').signer).toMatchObject(SIGNER);
  });

  it('takes SIGSTORE_ID_TOKEN before it, and asks a timestamp authority where one is named', async () => {
    const env = { ...sigstore.env, SIGSTORE_ID_TOKEN: identityToken({ sub: 'me' }), SIGSTORE_TSA_URL: sigstore.url };
    const bundle = Buffer.from(await sign(env));
    expect(sigstore.log.sort()).toEqual([
      'POST /api/v1/log/entries',
      'POST /api/v1/timestamp',
      'POST /api/v2/signingCert',
    ]);
    expect(verifyBundle(bundle, sigstore.root, undefined, 'x').signer.identity).toBe('me');
  });

  it.each<[string, Record<string, string>]>([
    ['IDENTITY_TOKEN_MISSING', {}],
    ['IDENTITY_TOKEN_MISSING', { SIGSTORE_ID_TOKEN: ' ' }],
    ['IDENTITY_TOKEN_MISSING', { ACTIONS_ID_TOKEN_REQUEST_URL: 'http://127.0.0.1:1/' }],
    ['IDENTITY_TOKEN_MISSING', { ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'x' }],
    ['IDENTITY_TOKEN_INVALID', { SIGSTORE_ID_TOKEN: 'SecretSecret' }],
    ['IDENTITY_TOKEN_INVALID', { SIGSTORE_ID_TOKEN: 'a.SecretSecret.c' }],
    ['IDENTITY_TOKEN_INVALID', { SIGSTORE_ID_TOKEN: identityToken({ sub: 7 }) }],
    ['IDENTITY_TOKEN_REFUSED', { ACTIONS_ID_TOKEN_REQUEST_URL: 'file:///x', ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'x' }],
    [
      'IDENTITY_TOKEN_REFUSED',
      { ACTIONS_ID_TOKEN_REQUEST_URL: 'http://127.0.0.1:1/', ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'x' },
    ],
    ['SIGNING_ENDPOINT', { SIGSTORE_FULCIO_URL: 'ftp://host' }],
    ['SIGNING_ENDPOINT', { SIGSTORE_REKOR_URL: 'host' }],
  ])('tells %s for %j', async (code, env) => {
    expect(await codeOf(() => sign(env))).toBe(code);
    expect(sigstore.log).toEqual([]);
  });

  it.each([
    ['IDENTITY_TOKEN_REFUSED', 403, '{"message": "no"}'],
    ['IDENTITY_TOKEN_REFUSED', 302, ''],
    ['IDENTITY_TOKEN_INVALID', 200, '<html>'],
    ['IDENTITY_TOKEN_INVALID', 200, '{"value": 7}'],
    ['IDENTITY_TOKEN_INVALID', 200, JSON.stringify({ value: `${identityToken()}\n` })],
    ['IDENTITY_TOKEN_INVALID', 200, JSON.stringify({ value: identityToken({ pad: 'x'.repeat(1 << 20) }) })],
  ])('tells %s when the CI service answers %i', async (code, status, body) => {
    sigstore.ciAnswer = { status, body };
    expect(await codeOf(() => sign(sigstore.env))).toBe(code);
    expect(sigstore.log).toHaveLength(1);
  });

  // F17: the token is in no error, whatever a service does; here each one echoes what it was sent.
  it.each(['/api/v2/signingCert', '/api/v1/log/entries', '/api/v1/timestamp'])(
    'tells SIGNING_FAILED when %s refuses, and not the token',
    async (path) => {
      sigstore.failing.set(path, 400);
      const failed = sign({ ...sigstore.env, SIGSTORE_TSA_URL: sigstore.url });
      const error = await failed.then(
        () => undefined,
        (one: Error) => one,
      );
      expect(error).toMatchObject({ code: 'SIGNING_FAILED', found: expect.stringContaining('400') });
      expect(inspect(error, { depth: 20, showHidden: true }) + error?.stack).not.toMatch(/SecretSecret/);
    },
  );
});
