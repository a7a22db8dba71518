import type { Bundle } from '@sigstore/bundle';
import { bundleFromJSON } from '@sigstore/bundle';
import { decodeText, parseRecord } from '../../schemas/door.js';
import { LayaError } from '../../schemas/errors.js';
import { signatureBundle as validator } from '../../schemas/generated/signature-validators.js';
import type { SignatureBundle } from '../../schemas/generated/types.js';
import { SignatureError } from './errors.js';
import { checkBundleSize } from './file.js';

/** A bundle from its bytes, of the one shape that is accepted. Throws SignatureError SIGNATURE_INVALID. */
export function parseBundle(bytes: Uint8Array, where: string): Bundle {
  checkBundleSize(bytes.length, where);
  try {
    return bundleFromJSON(parseRecord<SignatureBundle>(decodeText(bytes, where), validator, where));
  } catch (error) {
    const faults = error instanceof LayaError && Array.isArray(error.found) ? error.found.slice(0, 8) : undefined;
    throw new SignatureError('SIGNATURE_INVALID', 'the file is no Sigstore bundle with a signed statement', {
      where,
      found: faults ?? (error as Error).message,
      hint: 'tell the publisher; do not use the archive',
      cause: error,
    });
  }
}

/** The payload of a bundle, whoever may have signed it; undefined where it is none. */
export function payloadOf(bytes: Uint8Array): string | undefined {
  try {
    const { content } = parseBundle(bytes, 'bundle');
    return content.$case === 'dsseEnvelope' ? content.dsseEnvelope.payload.toString('utf8') : undefined;
  } catch (error) {
    if (error instanceof SignatureError) return undefined;
    throw error;
  }
}
