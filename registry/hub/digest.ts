import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';

/** A content digest as the hub names it: SHA-256 for LFS files, git's blob SHA-1 for the others. Hex. */
export interface ContentDigest {
  readonly algorithm: 'sha256' | 'git-sha1';
  readonly hex: string;
}

/** The digest that a blob of the cache is named by, from its name. */
export function digestOfName(name: string): ContentDigest | undefined {
  if (/^[0-9a-f]{64}$/.test(name)) return { algorithm: 'sha256', hex: name };
  if (/^[0-9a-f]{40}$/.test(name)) return { algorithm: 'git-sha1', hex: name };
  return undefined;
}

/** A hash to feed a content of `size` bytes to. */
export function startHash(algorithm: ContentDigest['algorithm'], size: number): Hash {
  return algorithm === 'sha256' ? createHash('sha256') : createHash('sha1').update(`blob ${size}\0`);
}

/**
 * True when the file's whole content has every one of the digests. Streams. False for a path that is no regular file;
 * the system's error when it is one that can't be read.
 */
export async function fileHasDigests(path: string, digests: readonly ContentDigest[]): Promise<boolean> {
  const file = await open(path, 'r');
  try {
    const status = await file.stat();
    if (!status.isFile()) return false;
    const hashes = digests.map(({ algorithm }) => startHash(algorithm, status.size));
    const stream = createReadStream('', { fd: file, autoClose: false, highWaterMark: 1 << 20 });
    for await (const chunk of stream) for (const hash of hashes) hash.update(chunk as Buffer);
    return digests.every(({ hex }, i) => hashes[i]!.digest('hex') === hex);
  } finally {
    await file.close();
  }
}

/** Git's digest of a blob with these bytes. Hex. */
export const gitSha1 = (bytes: Uint8Array): string => startHash('git-sha1', bytes.length).update(bytes).digest('hex');
