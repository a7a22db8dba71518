import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';

const CHUNK = 1 << 20;

/**
 * SHA-256 of an open file's content as raw bytes, read from its start with one block of read-ahead,
 * so that the disk and the hash work at the same time. Memory: 2 MiB whatever the size.
 */
export async function sha256Handle(file: FileHandle): Promise<{ digest: Buffer; bytes: number }> {
  const hash = createHash('sha256');
  const buffers = [Buffer.allocUnsafe(CHUNK), Buffer.allocUnsafe(CHUNK)] as const;
  let turn = 0;
  let bytes = 0;
  let pending = file.read(buffers[0], 0, CHUNK, 0);
  for (;;) {
    const { bytesRead } = await pending;
    if (bytesRead === 0) return { digest: hash.digest(), bytes };
    const filled = buffers[turn as 0 | 1];
    bytes += bytesRead;
    turn ^= 1;
    pending = file.read(buffers[turn as 0 | 1], 0, CHUNK, bytes);
    hash.update(filled.subarray(0, bytesRead));
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
