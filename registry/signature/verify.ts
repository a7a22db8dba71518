import {
  type SignedEntity,
  type TrustMaterial,
  toSignedEntity,
  toTrustMaterial,
  VerificationError,
  Verifier,
} from '@sigstore/verify';
import type { SignatureIdentity, SignaturePolicy, SignatureStatement } from '../../schemas/generated/types.js';
import { parseBundle } from './bundle.js';
import { SignatureError } from './errors.js';
import { isTrusted } from './policy.js';
import { parseStatement } from './statement.js';
import type { TrustRoot } from './trust-root.js';

/** Who signed, as the certificate and the log tell it. */
export interface Signer extends SignatureIdentity {
  /** Time of signing by the log or the timestamp authority. */
  readonly signed_at: string;
  readonly log_index: string;
  /** What the issuer said about the CI job, where it did. */
  readonly repository: string | null;
  readonly commit: string | null;
  readonly run: string | null;
}

/** A statement, and who stands behind it. */
export interface Verified {
  readonly statement: SignatureStatement;
  readonly signer: Signer;
}

/** Certificate extensions that say what the CI job was. */
const EXTENSIONS = { repository: 12, commit: 13, run: 21 } as const;
const FULCIO = [1, 3, 6, 1, 4, 1, 57264, 1];

/**
 * A bundle's statement, once its signature, certificate, log entry and time hold by the trust root and, with a policy,
 * the signer is one of those it names. Opens no socket. Throws SignatureError.
 */
export function verifyBundle(
  bytes: Uint8Array,
  root: TrustRoot,
  policy: SignaturePolicy | undefined,
  where: string,
): Verified {
  const material = toTrustMaterial(root);
  try {
    return verified(bytes, material, policy, where);
  } catch (error) {
    if (error instanceof SignatureError) throw error;
    // Whatever a library throws here, a getter of a certificate's field too, it throws because of the bundle's bytes.
    const isTold = error instanceof VerificationError;
    throw invalid(isTold ? `${error.code}: ${error.message}` : 'its parts can not be read', where, error);
  }
}

function verified(
  bytes: Uint8Array,
  material: TrustMaterial,
  policy: SignaturePolicy | undefined,
  where: string,
): Verified {
  const bundle = parseBundle(bytes, where);
  const entity = toSignedEntity(bundle);
  const { subjectAlternativeName: name = '', extensions, oids = [] } = identityOf(entity, material, where);
  if (bundle.content.$case !== 'dsseEnvelope') throw invalid('it holds no statement', where, undefined);
  const told = (number: number): string | null => {
    const found = oids.find(({ oid }) => oid?.id.join() === [...FULCIO, number].join());
    return found ? utf8String(found.value) : null;
  };
  const signer = {
    identity: name,
    issuer: extensions?.issuer ?? '',
    signed_at: new Date(Math.min(...timesOf(entity).map(Number))).toISOString(),
    log_index: entity.tlogEntries[0]!.logIndex,
    repository: told(EXTENSIONS.repository),
    commit: told(EXTENSIONS.commit),
    run: told(EXTENSIONS.run),
  };
  if (policy && !isTrusted(policy, signer)) throw stranger(policy, signer, where);
  return { statement: parseStatement(bundle.content.dsseEnvelope.payload, where), signer };
}

/** The signer's identity by a signature that holds. Throws VerificationError, SignatureError SIGNATURE_EXPIRED. */
function identityOf(entity: SignedEntity, material: TrustMaterial, where: string) {
  try {
    const { identity } = new Verifier(material).verify(entity);
    if (identity) return identity;
    throw new VerificationError({ code: 'CERTIFICATE_ERROR', message: 'no identity' });
  } catch (error) {
    if (error instanceof VerificationError && error.code === 'CERTIFICATE_ERROR') refuseExpired(entity, where, error);
    throw error;
  }
}

/** Times that the log or a timestamp authority vouches for. */
const timesOf = (entity: SignedEntity): Date[] =>
  entity.timestamps.flatMap((one) => {
    if (one.$case === 'timestamp-authority') return [one.timestamp.signingTime];
    const { inclusionPromise, integratedTime } = one.tlogEntry;
    return inclusionPromise ? [new Date(Number(integratedTime) * 1000)] : [];
  });

function refuseExpired(entity: SignedEntity, where: string, cause: unknown): void {
  if (entity.key.$case !== 'certificate') return;
  const { certificate } = entity.key;
  const outside = timesOf(entity).find((time) => !certificate.validForDate(time));
  if (!outside) return;
  throw new SignatureError('SIGNATURE_EXPIRED', 'the certificate was not valid at the time of signing', {
    where,
    expected: `between ${certificate.notBefore.toISOString()} and ${certificate.notAfter.toISOString()}`,
    found: outside.toISOString(),
    hint: 'tell the publisher; do not use the archive',
    cause,
  });
}

const invalid = (found: string, where: string, cause: unknown): SignatureError =>
  new SignatureError('SIGNATURE_INVALID', 'the signature does not hold', {
    where,
    expected: 'a signature, certificate and log entry that the trust root vouches for',
    found,
    hint: 'tell the publisher and do not use the archive; an outdated --trusted-root also does this',
    cause,
  });

const stranger = (policy: SignaturePolicy, { identity, issuer }: Signer, where: string): SignatureError =>
  new SignatureError('SIGNATURE_IDENTITY', 'the archive is signed by someone who is not trusted', {
    where,
    expected: policy.identities.slice(0, 8),
    found: { identity, issuer },
    hint: 'correct --identity and --issuer (or the policy) if that is whom you trust',
  });

/** The text of a DER UTF8String; null for anything else. */
function utf8String(der: Buffer): string | null {
  const isShort = der[0] === 0x0c && der[1] !== undefined && der[1] < 0x80;
  const isLong = der[0] === 0x0c && der[1] === 0x81;
  const start = isShort ? 2 : 3;
  return isShort || isLong ? der.subarray(start, start + der[start - 1]!).toString('utf8') : null;
}
