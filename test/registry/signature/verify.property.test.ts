import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { SignatureError } from '../../../registry/signature/errors.js';
import { statementOf, statementText } from '../../../registry/signature/statement.js';
import { verifyBundle } from '../../../registry/signature/verify.js';
import { SIGNER, TestSigstore } from '../../sigstore/server.js';
import { keptFolder } from '../../workspace.js';
import { writeArtifact } from '../artifact.js';

const folder = keptFolder();
let sigstore: TestSigstore;
let text: string;
let bundle: string;
beforeAll(async () => {
  sigstore = await TestSigstore.start();
  const statement = statementOf(await writeArtifact(folder()), { sha256: 'a'.repeat(64) });
  text = statementText(statement);
  bundle = JSON.stringify(JSON.parse(await sigstore.sign(statement, {}, true)));
});
afterAll(() => sigstore.close());

/** The statement, or undefined for a bundle that is refused; anything else than a SignatureError fails the test. */
function verify(bytes: Buffer): string | undefined {
  try {
    const { statement, signer } = verifyBundle(bytes, sigstore.root, { identities: [SIGNER] }, 'bundle');
    expect(signer).toMatchObject(SIGNER);
    return statementText(statement);
  } catch (error) {
    if (error instanceof SignatureError) return undefined;
    throw error;
  }
}

it('a bundle with any other byte is refused, or says the same', () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const bytes = Buffer.from(bundle);
      bytes[at % bytes.length]! ^= change;
      expect([undefined, text]).toContain(verify(bytes));
    }),
    { numRuns: 150 },
  );
});

it('a bundle with a certificate of which any byte is another is refused, or says the same', () => {
  const { rawBytes } = JSON.parse(bundle).verificationMaterial.certificate as { rawBytes: string };
  const whole = Buffer.from(rawBytes, 'base64');
  for (let at = 0; at < whole.length; at += 1) {
    for (const change of [0x01, 0x80, 0xff]) {
      const bytes = Buffer.from(whole);
      bytes[at]! ^= change;
      const other = verify(Buffer.from(bundle.replace(rawBytes, bytes.toString('base64'))));
      expect([undefined, text]).toContain(other);
    }
  }
});

it('a bundle with any other bytes in one of its parts is refused, or says the same', () => {
  const parts = [...bundle.matchAll(/"([A-Za-z0-9+/]{20,}={0,2})"/g)].map((match) => match[1]!);
  expect(parts.length).toBeGreaterThan(6);
  fc.assert(
    fc.property(fc.constantFrom(...parts), fc.nat(), fc.uint8Array({ maxLength: 12 }), (part, at, put) => {
      const bytes = Buffer.from(part, 'base64');
      const start = at % bytes.length;
      const other = Buffer.concat([bytes.subarray(0, start), put, bytes.subarray(start + (at % 7))]);
      expect([undefined, text]).toContain(verify(Buffer.from(bundle.replace(part, other.toString('base64')))));
    }),
    { numRuns: 150 },
  );
});
