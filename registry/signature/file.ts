import { SignatureError } from './errors.js';

/** Upper bound of a bundle's text; that of laya-tiny has 11 kB. */
const MAX_BUNDLE_BYTES = 1 << 20;

/** Where the signature of an archive is, from the archive's path. */
export const bundlePath = (archive: string): string => `${archive}.sigstore.json`;

export const isBundleSize = (bytes: number): boolean => bytes <= MAX_BUNDLE_BYTES;

/** Throws SignatureError SIGNATURE_INVALID for a file that is too large to be a bundle. */
export function checkBundleSize(bytes: number, where: string): void {
  if (isBundleSize(bytes)) return;
  throw new SignatureError('SIGNATURE_INVALID', 'the file is too large for a Sigstore bundle', {
    where,
    expected: `at most ${MAX_BUNDLE_BYTES} bytes`,
    found: bytes,
    hint: 'tell the publisher; do not use the archive',
  });
}

/** The error where an archive has no bundle beside it. */
export const missingBundle = (where: string): SignatureError =>
  new SignatureError('SIGNATURE_MISSING', 'the archive is not signed', {
    where,
    expected: 'a Sigstore bundle beside the archive',
    found: 'none',
    hint: 'ask the publisher to run publish --sign',
  });
