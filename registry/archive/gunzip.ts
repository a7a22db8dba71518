import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { createGunzip, type Gunzip } from 'node:zlib';
import { isSystemError } from '../../schemas/errors.js';
import { ArchiveError } from './errors.js';
import { LIMITS } from './members.js';

const READ = 256 << 10;
const INFLATED = 256 << 10;
/** Pieces that wait for zlib, so that it never waits for the disk. */
const AHEAD = 2;

/** An archive file as its bytes were read, once. */
export interface ReadFile {
  readonly sha256: string;
  readonly bytes: number;
}

/**
 * Reads a gzip file in one pass: every byte goes through SHA-256 and through inflate, whose output goes to `take`
 * piece by piece. zlib checks CRC and length of every member; several members count as one; only zeros may follow.
 * The disk, inflate, and what `take` does run side by side.
 * Throws ArchiveError ARCHIVE_UNREADABLE, ARCHIVE_CORRUPT, ARCHIVE_TRUNCATED, ARCHIVE_TRAILING, ARCHIVE_LIMIT.
 */
export async function gunzipFile(
  path: string,
  signal: AbortSignal,
  take: (piece: Buffer) => Promise<void>,
): Promise<ReadFile> {
  const { file, size } = await openRegular(path);
  const gunzip = createGunzip({ chunkSize: INFLATED });
  try {
    const [read] = await Promise.all([feed(file, gunzip, signal), drain(gunzip, take, size)]);
    if (gunzip.bytesWritten < read.bytes) await requireZeros(file, gunzip.bytesWritten);
    return read;
  } catch (error) {
    throw asArchiveError(error, path);
  } finally {
    gunzip.destroy();
    await file.close();
  }
}

async function openRegular(path: string): Promise<{ file: FileHandle; size: number }> {
  const fail = (message: string, cause?: unknown): ArchiveError =>
    new ArchiveError('ARCHIVE_UNREADABLE', message, { where: path, hint: 'name the archive file', cause });
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch((error: unknown) => {
    throw isSystemError(error) ? fail(`the archive can't be opened: ${error.message}`, error) : error;
  });
  const found = await file.stat();
  if (found.isFile()) return { file, size: found.size };
  await file.close();
  throw fail('the archive is no regular file');
}

/** Reads the file to its end, whatever gunzip makes of it: the digest is over all bytes. */
async function feed(file: FileHandle, gunzip: Gunzip, signal: AbortSignal): Promise<ReadFile> {
  const hash = createHash('sha256');
  const waiting: Promise<void>[] = [];
  let over = false;
  let bytes = 0;
  const ended = new Promise<void>((resolve) => {
    for (const event of ['end', 'close', 'error'])
      gunzip.once(event, () => {
        over = true;
        resolve();
      });
  });
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(READ), 0, READ, bytes);
    const refused = gunzip.destroyed && !gunzip.readableEnded;
    if (bytesRead === 0 || refused) break;
    const piece = buffer.subarray(0, bytesRead);
    bytes += bytesRead;
    hash.update(piece);
    if (over) continue;
    waiting.push(new Promise((resolve) => gunzip.write(piece, () => resolve())));
    if (waiting.length > AHEAD) await Promise.race([waiting.shift(), ended]);
  }
  if (!over) gunzip.end();
  return { sha256: hash.digest('hex'), bytes };
}

async function drain(gunzip: Gunzip, take: (piece: Buffer) => Promise<void>, size: number): Promise<void> {
  let unpacked = 0;
  for await (const piece of gunzip as AsyncIterable<Buffer>) {
    unpacked += piece.length;
    if (unpacked > LIMITS.ratioFrom && unpacked > LIMITS.ratio * size)
      throw new ArchiveError('ARCHIVE_LIMIT', 'the archive unpacks to far more than its size', {
        expected: `at most ${LIMITS.ratio} times`,
        found: `${unpacked} bytes or more of ${size}`,
      });
    await take(piece);
  }
}

async function requireZeros(file: FileHandle, from: number): Promise<void> {
  for (let at = from; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(READ), 0, READ, at);
    if (bytesRead === 0) return;
    if (!buffer.subarray(0, bytesRead).every((byte) => byte === 0))
      throw new ArchiveError('ARCHIVE_TRAILING', 'something follows the compressed data', {
        expected: 'nothing, or zeros',
        found: `bytes from ${from} on`,
      });
    at += bytesRead;
  }
}

/** zlib's errors as ours; the file's name added to what the reader of the content refused. */
function asArchiveError(error: unknown, path: string): unknown {
  if (isSystemError(error, 'Z_BUF_ERROR'))
    return new ArchiveError('ARCHIVE_TRUNCATED', 'the compressed data ends too early', { where: path, cause: error });
  if (isSystemError(error, 'Z_DATA_ERROR', 'Z_NEED_DICT', 'Z_STREAM_ERROR'))
    return new ArchiveError('ARCHIVE_CORRUPT', `the file is not whole gzip data: ${error.message}`, {
      where: path,
      hint: 'copy or download the archive again',
      cause: error,
    });
  return error;
}
