import { createHash, timingSafeEqual } from 'node:crypto';
import { ServeError } from './errors.js';

/** Tells whether an Authorization header carries the server's key. */
export type KeyCheck = (authorization: string | undefined) => boolean;

const digest = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest();

/**
 * The check for `LAYA_API_KEY`: `Bearer <key>`, compared by digests in constant time. Without a key every request
 * passes, as clients of this protocol always send one. Throws ServeError API_KEY_INVALID for a key no header can carry.
 */
export function keyCheck(key: string | undefined): KeyCheck {
  if (key === undefined || key === '') return () => true;
  if (/[\0-\x20\x7f]/.test(key)) {
    throw new ServeError('API_KEY_INVALID', 'LAYA_API_KEY holds white space or control characters', {
      where: 'LAYA_API_KEY',
      hint: 'remove the line break at its end, if it was read from a file',
    });
  }
  const expected = digest(Buffer.from(`Bearer ${key}`, 'utf8'));
  // Header values arrive as one character per byte.
  return (authorization) => timingSafeEqual(digest(Buffer.from(authorization ?? '', 'latin1')), expected);
}
