import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { statementOf, statementText } from '../../../registry/signature/statement.js';
import { verifyBundle } from '../../../registry/signature/verify.js';
import type { SignatureStatement } from '../../../schemas/generated/types.js';
import type { Loose } from '../../files.js';
import { SIGNER, TestSigstore } from '../../sigstore/server.js';
import { codeOf, keptFolder } from '../../workspace.js';
import { writeArtifact } from '../artifact.js';

const folder = keptFolder();
const POLICY = { identities: [SIGNER] };
let sigstore: TestSigstore;
let statement: SignatureStatement;
let bundle: string;
beforeAll(async () => {
  sigstore = await TestSigstore.start();
  statement = statementOf(await writeArtifact(folder()), { sha256: 'a'.repeat(64) });
  bundle = await sigstore.sign(statement);
});
afterAll(() => sigstore.close());

const verify = (text: string | Buffer, policy: typeof POLICY | null = POLICY, root = sigstore.root) =>
  verifyBundle(Buffer.from(text), root, policy ?? undefined, 'bundle');
/** The bundle with a change in its JSON. */
function changed(edit: (bundle: Loose) => unknown, text = bundle): string {
  const value = JSON.parse(text);
  return JSON.stringify(edit(value) ?? value);
}
/** An edit that sets a member of what `at` gives. */
const set = (at: (bundle: Loose) => Loose, name: string, value: unknown) => (bundle: Loose) => {
  at(bundle)[name] = value;
};
const entry = (bundle: Loose) => bundle.verificationMaterial.tlogEntries[0];
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('a bundle that holds', () => {
  it('gives the statement, byte by byte, and who signed it when', () => {
    const { statement: read, signer } = verify(bundle);
    expect(statementText(read)).toBe(statementText(statement));
    expect(signer).toMatchObject({ ...SIGNER, repository: null, commit: null, run: null });
    expect(Math.abs(Date.parse(signer.signed_at) - Date.now())).toBeLessThan(600_000);
    expect(signer.log_index).toMatch(/^\d+$/);
  });

  it('tells what the issuer said about the job', async () => {
    const job = { repository: 'owner/models', sha: 'c'.repeat(40), run_id: '7', run_attempt: '1' };
    const { signer } = verify(await sigstore.sign(statement, job));
    const repository = 'https://github.com/owner/models';
    expect(signer).toMatchObject({ repository, commit: job.sha, run: `${repository}/actions/runs/7/attempts/1` });
  });

  it('may carry a time from a timestamp authority', async () => {
    const text = await sigstore.sign(statement, {}, true);
    expect(JSON.parse(text).verificationMaterial.timestampVerificationData.rfc3161Timestamps).toHaveLength(1);
    expect(verify(text).signer).toMatchObject(SIGNER);
  });

  it('may be anyone where no policy is given', async () => {
    const text = await sigstore.sign(statement, { sub: 'https://elsewhere.example/x' });
    expect(verify(text, null).signer.identity).toBe('https://elsewhere.example/x');
  });
});

describe('an identity that is not trusted', () => {
  it.each([
    ['another name', { identity: 'https://ci.example/owner/models/other.yml@refs/heads/main' }],
    ['a part of the name', { identity: 'https://ci.example/owner/models' }],
    ['a pattern that fits the name', { identity: '.*' }],
    ['another case', { identity: SIGNER.identity.toUpperCase() }],
    ['another issuer', { issuer: 'https://token.ci.example/' }],
  ])('is %s', async (_name, change) => {
    const policy = { identities: [{ ...SIGNER, ...change }] };
    expect(await codeOf(() => verify(bundle, policy))).toBe('SIGNATURE_IDENTITY');
  });

  it('is a trusted name of another issuer', async () => {
    const policy = {
      identities: [
        { ...SIGNER, issuer: 'https://other.example' },
        { identity: 'other', issuer: SIGNER.issuer },
      ],
    };
    expect(await codeOf(() => verify(bundle, policy))).toBe('SIGNATURE_IDENTITY');
    expect(verify(bundle, { identities: [...policy.identities, SIGNER] }).signer).toMatchObject(SIGNER);
  });
});

describe('a bundle that does not hold', () => {
  it.each<[string, (bundle: Loose) => unknown]>([
    ['a tampered statement', set((b) => b.dsseEnvelope, 'payload', base64('{}'))],
    ['another signature', set((b) => b.dsseEnvelope.signatures[0], 'sig', base64('x'.repeat(70)))],
    ['another kind of payload', set((b) => b.dsseEnvelope, 'payloadType', 'text/plain')],
    [
      'two signatures',
      (b) => {
        b.dsseEnvelope.signatures.push(b.dsseEnvelope.signatures[0]);
      },
    ],
    ['no log entry', set((b) => b.verificationMaterial, 'tlogEntries', [])],
    [
      'a log entry of another time',
      (b) => {
        entry(b).integratedTime = `${Number(entry(b).integratedTime) + 1}`;
      },
    ],
    ['a log entry of another body', set((b) => entry(b), 'canonicalizedBody', base64('{"kind":"dsse"}'))],
    [
      'a log entry without a promise',
      (b) => {
        delete entry(b).inclusionPromise;
      },
    ],
    ['an invalid proof', set((b) => entry(b).inclusionProof.checkpoint, 'envelope', 'x\n1\nAAAA\n\n')],
    ['a certificate that is none', set((b) => b.verificationMaterial.certificate, 'rawBytes', base64('0'.repeat(600)))],
    ['a key in place of a certificate', set((b) => b, 'verificationMaterial', { publicKey: { hint: 'x' } })],
    [
      'a signed file in place of a statement',
      (b) => {
        delete b.dsseEnvelope;
      },
    ],
    ['a list', () => []],
    ['null', () => 'null'],
    ['another media type', set((b) => b, 'mediaType', 'application/json')],
    ['a time that is no number', set((b) => entry(b), 'integratedTime', '1e9')],
    ['bytes that are no base64', set((b) => b.dsseEnvelope, 'payload', '<>')],
  ])('is one with %s', async (_name, edit) => {
    expect(await codeOf(() => verify(changed(edit)))).toBe('SIGNATURE_INVALID');
  });

  it.each<[string, () => string | Buffer]>([
    ['nothing', () => ''],
    ['cut off', () => bundle.slice(0, bundle.length >> 1)],
    ['a web page', () => '<!doctype html><p>Sign in</p>'],
    ['not UTF-8', () => Buffer.from([0xff, 0xfe, 0x7b])],
    ['nested without end', () => `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['larger than a megabyte', () => bundle + ' '.repeat(1 << 20)],
    ['two values for a key', () => bundle.replace('{', '{"mediaType": "x",')],
  ])('is text that is %s', async (_name, make) => {
    expect(await codeOf(() => verify(make()))).toBe('SIGNATURE_INVALID');
  });

  // The verifying library takes names in a checkpoint as regular expressions: this one would run for hours.
  it('is one with a pattern for the name of its log', async () => {
    const text = changed((b) => {
      const { checkpoint } = entry(b).inclusionProof;
      checkpoint.envelope = checkpoint.envelope.replace(/— \S+/, '— (([a-z0-9:/.]+)+)+!');
    });
    expect(await codeOf(() => verify(text))).toBe('SIGNATURE_INVALID');
  });

  it('is one of another Sigstore', async () => {
    const other = await TestSigstore.start();
    try {
      expect(await codeOf(() => verify(bundle, POLICY, other.root))).toBe('SIGNATURE_INVALID');
    } finally {
      await other.close();
    }
  });

  it.each([
    ['ended', -3600_000],
    ['began', 3600_000],
  ])('is one whose certificate %s at another time', async (_name, shift) => {
    const other = await TestSigstore.start(new Date(Date.now() + shift));
    try {
      const text = await other.sign(statement);
      expect(await codeOf(() => verify(text, POLICY, other.root))).toBe('SIGNATURE_EXPIRED');
    } finally {
      await other.close();
    }
  });

  it('is a signed text that is no statement', async () => {
    for (const other of [{}, { ...statement, predicateType: 'https://other.example' }, { ...statement, subject: [] }]) {
      const text = await sigstore.sign(other as SignatureStatement);
      expect(await codeOf(() => verify(text))).toBe('STATEMENT_INVALID');
    }
  });
});
