import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { isSystemError } from '../../schemas/errors.js';
import { ArchiveError } from './errors.js';
import { LIMITS } from './members.js';

const READ = 512 << 10;
const INFLATED = 1 << 20;
/** Pieces that wait for zlib, so that it never waits for where they come from. */
const AHEAD = 2;

/** An archive file as its bytes were read, once. */
export interface ReadFile {
  readonly sha256: string;
  readonly bytes: number;
}

/**
 * Inflates gzip data that is pushed piece by piece; the output goes to `take`. zlib checks CRC and length of every
 * member; several members count as one; only zeros may follow. Where the pieces come from, inflate, and what `take`
 * does run side by side. Throws ArchiveError ARCHIVE_CORRUPT, ARCHIVE_TRUNCATED, ARCHIVE_TRAILING, ARCHIVE_LIMIT, and
 * whatever `take` throws.
 */
export class Inflater {
  readonly #where: string;
  readonly #gunzip = createGunzip({ chunkSize: INFLATED });
  readonly #drained: Promise<void>;
  readonly #ended: Promise<void>;
  readonly #waiting: Promise<void>[] = [];
  /** Pieces that zlib has not used up yet, and where they start. */
  readonly #unused: { readonly at: number; readonly piece: Buffer }[] = [];
  #over = false;
  #failed = false;
  #bytes = 0;

  /** @param size Bytes of the whole gzip data, by which its ratio is judged. */
  constructor(where: string, size: number, take: (piece: Buffer) => Promise<void>) {
    this.#where = where;
    this.#ended = new Promise((resolve) => {
      for (const event of ['end', 'close', 'error'])
        this.#gunzip.once(event, () => {
          this.#over = true;
          resolve();
        });
    });
    this.#drained = this.#drain(size, take);
    this.#drained.catch(() => {
      this.#failed = true;
    });
  }

  /** The next bytes; they must stay valid. Resolves when more may come; rejects once the data has been refused. */
  async push(piece: Buffer): Promise<void> {
    if (this.#failed) await this.#judge(this.#drained);
    const at = this.#bytes;
    this.#bytes += piece.length;
    if (this.#over) return requireZeros(piece, at);
    this.#unused.push({ at, piece });
    const used = new Promise<void>((resolve) =>
      this.#gunzip.write(piece, () => {
        if (this.#gunzip.bytesWritten >= at + piece.length) this.#unused.shift();
        resolve();
      }),
    );
    this.#waiting.push(used);
    if (this.#waiting.length > AHEAD) await Promise.race([this.#waiting.shift(), this.#ended]);
  }

  /** Resolves when everything that was pushed is whole gzip data, and `take` has taken its content. */
  async finish(): Promise<void> {
    if (!this.#over) this.#gunzip.end();
    await this.#judge(this.#drained);
    const end = this.#gunzip.bytesWritten;
    for (const { at, piece } of this.#unused) requireZeros(piece.subarray(Math.max(0, end - at)), Math.max(at, end));
  }

  /** Lets go of zlib, and waits until `take` has returned. */
  async close(): Promise<void> {
    this.#gunzip.destroy();
    await this.#drained.catch(() => undefined);
  }

  async #drain(size: number, take: (piece: Buffer) => Promise<void>): Promise<void> {
    let unpacked = 0;
    for await (const piece of this.#gunzip as AsyncIterable<Buffer>) {
      unpacked += piece.length;
      if (unpacked > LIMITS.ratioFrom && unpacked > LIMITS.ratio * size)
        throw new ArchiveError('ARCHIVE_LIMIT', 'the archive unpacks to far more than its size', {
          expected: `at most ${LIMITS.ratio} times`,
          found: `${unpacked} bytes or more of ${size}`,
        });
      await take(piece);
    }
  }

  async #judge(outcome: Promise<void>): Promise<void> {
    try {
      await outcome;
    } catch (error) {
      throw asArchiveError(error, this.#where);
    }
  }
}

/**
 * Reads a file in one pass: every byte goes through SHA-256 and to `push`, which may end the reading.
 * Throws ArchiveError ARCHIVE_UNREADABLE.
 */
export async function readPieces(
  { file, path }: OpenedFile,
  signal: AbortSignal,
  push: (piece: Buffer) => Promise<void>,
): Promise<ReadFile> {
  const hash = createHash('sha256');
  for (let bytes = 0; ; ) {
    signal.throwIfAborted();
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(READ), 0, READ, bytes).catch((error: unknown) => {
      throw isSystemError(error) ? unreadable(path, `the archive can't be read: ${error.message}`, error) : error;
    });
    if (bytesRead === 0) return { sha256: hash.digest('hex'), bytes };
    const piece = buffer.subarray(0, bytesRead);
    bytes += bytesRead;
    hash.update(piece);
    await push(piece);
  }
}

interface OpenedFile {
  readonly path: string;
  readonly file: FileHandle;
  readonly size: number;
}

/** Opens a regular file. Throws ArchiveError ARCHIVE_UNREADABLE. */
export async function openRegular(path: string): Promise<OpenedFile> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch((error: unknown) => {
    throw isSystemError(error) ? unreadable(path, `the archive can't be opened: ${error.message}`, error) : error;
  });
  try {
    const found = await file.stat();
    if (found.isFile()) return { path, file, size: found.size };
    throw unreadable(path, 'the archive is no regular file');
  } catch (error) {
    await file.close();
    throw isSystemError(error) ? unreadable(path, `the archive can't be looked at: ${error.message}`, error) : error;
  }
}

const unreadable = (path: string, message: string, cause?: unknown): ArchiveError =>
  new ArchiveError('ARCHIVE_UNREADABLE', message, { where: path, hint: 'name the archive file', cause });

function requireZeros(piece: Buffer, from: number): void {
  if (piece.every((byte) => byte === 0)) return;
  throw new ArchiveError('ARCHIVE_TRAILING', 'something follows the compressed data', {
    expected: 'nothing, or zeros',
    found: `bytes from ${from} on`,
  });
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
