import type { ContentDigest } from './digest.js';
import { HubError } from './errors.js';

/** What a file must be before it counts as downloaded. */
export interface ExpectedContent {
  readonly size: number;
  readonly digests: readonly ContentDigest[];
}

/** Bytes of a body that are kept to tell what it is. */
export const HEAD_BYTES = 512;

/** The error of a body that is not the expected one; `head` are its first bytes, `wrong` a digest that it doesn't have. */
export function wrongContent(
  head: Buffer,
  bytes: number,
  size: number,
  wrong: ContentDigest | undefined,
  where: string,
): HubError {
  const text = head.toString('latin1').trimStart().toLowerCase();
  const facts = { where, expected: `${size} bytes` };
  if (text.startsWith('<!doctype') || text.startsWith('<html')) {
    return new HubError('HUB_HTML', 'a web page came instead of the file', {
      ...facts,
      found: 'HTML',
      hint: 'a sign-in page or proxy may answer in the place of the hub: open the URL in a browser',
    });
  }
  if (text.startsWith('version https://git-lfs')) {
    const hint = 'the endpoint (HF_ENDPOINT) does not serve large files: use another one';
    return new HubError('HUB_POINTER', 'a Git LFS pointer came instead of the file', {
      ...facts,
      found: 'pointer',
      hint,
    });
  }
  const hint = 'try again; if it stays so, the endpoint (HF_ENDPOINT) or a proxy alters what it serves';
  if (bytes !== size) {
    const found = bytes > size ? `more than ${size} bytes` : `${bytes} bytes`;
    const code = bytes > size ? 'HUB_CORRUPT' : 'HUB_SHORT';
    return new HubError(code, `the file should have ${size} bytes, ${found} came`, { ...facts, found, hint });
  }
  return new HubError('HUB_CORRUPT', 'the content is not the one the listing promises', {
    where,
    expected: `${wrong?.algorithm} ${wrong?.hex}`,
    found: `${bytes} other bytes`,
    hint,
  });
}
