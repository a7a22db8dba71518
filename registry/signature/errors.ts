import { LayaError } from '../../schemas/errors.js';

export type SignatureErrorCode =
  /** There is no bundle beside the archive. */
  | 'SIGNATURE_MISSING'
  /** Not a bundle, or one whose signature, certificate or log entry does not hold by the trust root. */
  | 'SIGNATURE_INVALID'
  /** The certificate was not valid at the time of signing. */
  | 'SIGNATURE_EXPIRED'
  /** It holds, and is someone else's. */
  | 'SIGNATURE_IDENTITY'
  /** What was signed is no statement about an archive. */
  | 'STATEMENT_INVALID'
  /** The statement is about another archive, or says other things than the archive. */
  | 'STATEMENT_MISMATCH';

/** An archive that is not signed by whom it has to be. Nothing of it was used. */
export class SignatureError extends LayaError<SignatureErrorCode> {}

export type TrustErrorCode =
  /** The file or the cached copy is not there. */
  | 'TRUST_ROOT_MISSING'
  | 'TRUST_ROOT_INVALID'
  /** It could not be brought from where it is published. */
  | 'TRUST_ROOT_UNAVAILABLE'
  | 'TRUST_POLICY_INVALID';

/** What signatures are to be judged by can't be used. Nothing was judged. */
export class TrustError extends LayaError<TrustErrorCode> {}

export type SigningErrorCode =
  /** Nothing in the environment says who signs. */
  | 'IDENTITY_TOKEN_MISSING'
  | 'IDENTITY_TOKEN_INVALID'
  /** The CI service gave no token. */
  | 'IDENTITY_TOKEN_REFUSED'
  | 'SIGNING_ENDPOINT'
  /** The certificate authority, log or timestamp authority refused. */
  | 'SIGNING_FAILED';

/** Nothing was signed. Never holds a token. */
export class SigningError extends LayaError<SigningErrorCode> {}
