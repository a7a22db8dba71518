import { bundleToJSON } from '@sigstore/bundle';
import { DSSEBundleBuilder, FulcioSigner, RekorWitness, TSAWitness } from '@sigstore/sign';
import type { SignatureStatement } from '../../schemas/generated/types.js';
import { recordText } from '../durable.js';
import type { Environment } from '../paths.js';
import { SigningError } from './errors.js';
import type { TokenSource } from './identity.js';
import { PAYLOAD_TYPE, statementText } from './statement.js';

/** Base URLs of a Sigstore; the library's own public ones where they are absent. */
export interface SigningServices {
  /** Certificate authority. */
  readonly fulcio?: string;
  /** Transparency log. */
  readonly rekor?: string;
  /** Timestamp authority; none is asked when it is absent. */
  readonly tsa?: string;
}

const OPTIONS = { retry: { retries: 3 }, timeout: 20_000 };

/** A private Sigstore from the environment. Throws SigningError SIGNING_ENDPOINT. */
export function signingServices(env: Environment): SigningServices {
  const read = (name: string): string | undefined => {
    const text = env[name]?.trim();
    if (!text) return undefined;
    if (/^https?:\/\//.test(text) && URL.canParse(text)) return text.replace(/\/+$/, '');
    throw new SigningError('SIGNING_ENDPOINT', `${name} can't be used`, {
      where: name,
      expected: 'an http or https URL',
      hint: `correct ${name}, or unset it for the public Sigstore`,
    });
  };
  const [fulcio, rekor, tsa] = ['SIGSTORE_FULCIO_URL', 'SIGSTORE_REKOR_URL', 'SIGSTORE_TSA_URL'].map(read);
  return { ...(fulcio ? { fulcio } : {}), ...(rekor ? { rekor } : {}), ...(tsa ? { tsa } : {}) };
}

/**
 * Signs a statement with a key that exists only for this: the certificate authority binds it to the token's identity, the
 * log notes the signature. Gives the bundle's text.
 *
 * @throws SigningError; it quotes neither the token nor what a service answered
 */
export async function signStatement(
  statement: SignatureStatement,
  { fulcio, rekor, tsa }: SigningServices,
  token: TokenSource,
): Promise<string> {
  const value = await token();
  const signer = new FulcioSigner({
    ...OPTIONS,
    ...(fulcio ? { fulcioBaseURL: fulcio } : {}),
    identityProvider: { getToken: async () => value },
  });
  const log = new RekorWitness({ ...OPTIONS, ...(rekor ? { rekorBaseURL: rekor } : {}) });
  const witnesses = [log, ...(tsa ? [new TSAWitness({ ...OPTIONS, tsaBaseURL: tsa })] : [])];
  try {
    const builder = new DSSEBundleBuilder({ signer, witnesses });
    const bundle = await builder.create({ data: Buffer.from(statementText(statement)), type: PAYLOAD_TYPE });
    return recordText(bundleToJSON(bundle));
  } catch (error) {
    throw failure(error);
  }
}

const STEPS: Readonly<Record<string, string>> = {
  CA_CREATE_SIGNING_CERTIFICATE_ERROR: 'the certificate authority gave no certificate',
  TLOG_CREATE_ENTRY_ERROR: 'the transparency log did not take the signature',
  TSA_CREATE_TIMESTAMP_ERROR: 'the timestamp authority gave no timestamp',
};

/** Without the library's error as the cause: its messages may quote the token. */
function failure(error: unknown): SigningError {
  const { code, cause } = error as { code?: unknown; cause?: { statusCode?: unknown; code?: unknown } };
  const told = [code, cause?.statusCode ?? cause?.code].filter((one) => /^[\w-]{1,60}$/.test(String(one ?? '')));
  return new SigningError('SIGNING_FAILED', STEPS[String(code)] ?? 'the statement could not be signed', {
    found: told.join(' ') || 'no further word',
    hint: 'run the command again; a token is good for a few minutes only',
  });
}
