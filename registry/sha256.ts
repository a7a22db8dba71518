import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';

/** What fits the processor's cache: larger blocks go through memory twice, and take half as long again. */
const CHUNK = 64 << 10;
/** So long other work may wait for a block to be read and hashed, in milliseconds. */
const BURST_MS = 10;
/** Blocks between two looks at the clock. */
const BLOCKS = 16;

/**
 * SHA-256 of an open file's content as raw bytes, read from its start. Reads and hashes in bursts of some milliseconds,
 * between which other work has its turn; reading ahead is the system's. Memory: 64 KiB whatever the size.
 */
export async function sha256Handle(file: FileHandle): Promise<{ digest: Buffer; bytes: number }> {
  const hash = createHash('sha256');
  const block = Buffer.allocUnsafe(CHUNK);
  let bytes = 0;
  let started = performance.now();
  for (let count = 1; ; count++) {
    const read = readSync(file.fd, block, 0, CHUNK, bytes);
    if (read === 0) return { digest: hash.digest(), bytes };
    hash.update(read === CHUNK ? block : block.subarray(0, read));
    bytes += read;
    if (count % BLOCKS !== 0 || performance.now() - started < BURST_MS) continue;
    await turn();
    started = performance.now();
  }
}

/** SHA-256 of one file's content, as 64 hex digits. Throws the system's error if it can't be read. */
export async function sha256File(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    return (await sha256Handle(file)).digest.toString('hex');
  } finally {
    await file.close();
  }
}
