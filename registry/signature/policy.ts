import { readRecord } from '../../schemas/door.js';
import { isSystemError, RecordError } from '../../schemas/errors.js';
import { signaturePolicy as validator } from '../../schemas/generated/signature-validators.js';
import type { SignatureIdentity, SignaturePolicy } from '../../schemas/generated/types.js';
import { TrustError } from './errors.js';

/** A policy from its file. Throws TrustError TRUST_POLICY_INVALID for anything that is not exactly one. */
export async function readPolicy(path: string): Promise<SignaturePolicy> {
  try {
    return await readRecord<SignaturePolicy>(path, validator);
  } catch (error) {
    if (!(error instanceof RecordError) && !isSystemError(error)) throw error;
    throw new TrustError('TRUST_POLICY_INVALID', 'the policy file says nothing that can be gone by', {
      where: path,
      expected: '{"identities": [{"identity": "...", "issuer": "https://..."}]}',
      found: error instanceof RecordError ? (error.found ?? error.message) : error.code,
      hint: 'schemas/signature-policy.schema.json describes it',
      cause: error,
    });
  }
}

/** True when the policy names exactly this signer. */
export const isTrusted = ({ identities }: SignaturePolicy, { identity, issuer }: SignatureIdentity): boolean =>
  identities.some((one) => one.identity === identity && one.issuer === issuer);
