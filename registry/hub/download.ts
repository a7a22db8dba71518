import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncPath } from '../durable.js';
import { type ExpectedContent, HEAD_BYTES, wrongContent } from './content.js';
import { startHash } from './digest.js';
import { HubError } from './errors.js';
import type { HubResponse } from './fetch.js';
import { findPartials, giveUp, type Partial, temporaryName, WORTH_KEEPING } from './partial.js';
import { displayUrl } from './reply.js';
import { systemClock } from './retry.js';
import type { HubTransport } from './transport.js';

/** Takes a download's bytes on the way, from the first one on. A refusal ends only the taking. */
export interface ByteSink {
  push(piece: Buffer): Promise<void>;
  close(): Promise<void>;
}

/** Bytes that are handled at once. */
const PIECE = 256 << 10;
/** So many bytes are left to the system before it is asked to start writing them. */
const FLUSH_EVERY = 32 << 20;

/**
 * Downloads one file. It gets its name by a rename, after its size and digests were found right and its bytes are on
 * disk. A cut or stalled transfer goes on where it stopped, also in a later call; of other failures nothing is left.
 *
 * @param onBytes told the number of bytes received so far
 * @param sink makes one that gets the bytes as they come; called again when they start again. What the last one threw is
 * thrown in the end, when the file has its name; closing it is the caller's
 * @throws HubError, from the transport or HUB_HTML, HUB_POINTER, HUB_SHORT or HUB_CORRUPT; the system's errors
 */
export async function downloadFile(
  transport: HubTransport,
  url: URL,
  target: string,
  expected: ExpectedContent,
  onBytes: (received: number) => void = () => {},
  sink?: () => Promise<ByteSink>,
): Promise<void> {
  const partials = await findPartials(target, systemClock.now());
  const usable = partials.find(({ bytes }) => bytes <= expected.size);
  const attempt = (from?: Partial) => downloadOnce(transport, url, target, expected, { onBytes, sink, from });
  try {
    await attempt(usable);
  } catch (error) {
    // What was there may have been wrong: once more, from the first byte on.
    if (usable === undefined || !(error instanceof HubError) || !CONTENT_CODES.has(error.code)) throw error;
    await attempt();
  }
  for (const { path, isNobodys } of partials) if (isNobodys) await rm(path, { force: true });
}

const CONTENT_CODES: ReadonlySet<string> = new Set(['HUB_HTML', 'HUB_POINTER', 'HUB_SHORT', 'HUB_CORRUPT']);

interface Attempt {
  readonly onBytes: (received: number) => void;
  readonly sink: (() => Promise<ByteSink>) | undefined;
  readonly from: Partial | undefined;
}

async function downloadOnce(
  transport: HubTransport,
  url: URL,
  target: string,
  expected: ExpectedContent,
  options: Attempt,
): Promise<void> {
  const temporary = temporaryName(target);
  const file = await open(temporary, 'wx', 0o644);
  const receiver = new Receiver(file, url, expected, options);
  try {
    await receiver.start();
    if (!receiver.isComplete()) {
      const attempt = () => receiver.attempt(transport);
      await transport.retrying(attempt, () => receiver.advanced());
    }
    await receiver.check();
    await file.sync();
    await file.close();
    await rename(temporary, target);
  } catch (error) {
    await receiver.settle();
    await file.close();
    const mayGoOn = error instanceof HubError ? error.transient : transport.isStopped;
    if (mayGoOn && receiver.received >= WORTH_KEEPING) await giveUp(temporary, target);
    else await rm(temporary, { force: true });
    throw error;
  }
  await syncPath(dirname(target));
  receiver.throwRefusal();
}

/** Writes a body to a file over one or more tries, hashes it on the way, and hands it on. */
class Receiver {
  received = 0;
  readonly #file: FileHandle;
  readonly #url: URL;
  readonly #expected: ExpectedContent;
  readonly #options: Attempt;
  #hashes: ReturnType<typeof startHash>[] = [];
  #head = Buffer.alloc(0);
  #mark = 0;
  #sink: ByteSink | undefined;
  #refusal: { readonly error: unknown } | undefined;
  #writing: Promise<void> = Promise.resolve();
  #flushing: Promise<void> = Promise.resolve();
  #unflushed = 0;

  constructor(file: FileHandle, url: URL, expected: ExpectedContent, options: Attempt) {
    this.#file = file;
    this.#url = url;
    this.#expected = expected;
    this.#options = options;
  }

  /** Begins, with the bytes that an earlier download left. */
  async start(): Promise<void> {
    await this.#restart();
    const { from } = this.#options;
    if (from === undefined) return;
    const source = await open(from.path, 'r');
    try {
      while (this.received < from.bytes) {
        const length = Math.min(PIECE, from.bytes - this.received);
        const { bytesRead, buffer } = await source.read(Buffer.allocUnsafe(length), 0, length, this.received);
        if (bytesRead === 0) return;
        await this.#store(buffer.subarray(0, bytesRead));
      }
    } finally {
      await source.close();
    }
  }

  isComplete(): boolean {
    return this.received > 0 && this.received === this.#expected.size;
  }

  async attempt(transport: HubTransport): Promise<void> {
    const resume = this.received > 0;
    const response = await transport.get(this.#url, resume ? { range: `bytes=${this.received}-` } : {});
    const range = response.status === 206 ? (response.headers.get('content-range') ?? '') : '';
    if (resume && !range.startsWith(`bytes ${this.received}-`)) await this.#restart();
    try {
      await this.#receive(response);
    } catch (error) {
      // Nothing is missing: the connection broke after the last byte.
      if (this.received !== this.#expected.size) throw error;
    } finally {
      await response.cancel();
    }
  }

  /** True when the bytes grew by a fair amount since this was last asked. */
  advanced(): boolean {
    const grown = this.received - this.#mark;
    this.#mark = this.received;
    return grown >= WORTH_KEEPING;
  }

  /** Waits for the last write, and refuses a content that is not the expected one. */
  async check(): Promise<void> {
    await this.#writing;
    await this.#flushing;
    const { size, digests } = this.#expected;
    const wrong = digests.find(({ hex }, i) => this.#hashes[i]?.digest('hex') !== hex);
    if (this.received === size && !wrong) return;
    throw wrongContent(this.#head, this.received, size, wrong, displayUrl(this.#url));
  }

  /** Waits for what still runs, whatever becomes of it. */
  async settle(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#flushing.catch(() => undefined);
  }

  /** Throws what the sink threw, if it did. */
  throwRefusal(): void {
    if (this.#refusal) throw this.#refusal.error;
  }

  async #restart(): Promise<void> {
    await this.#writing;
    await this.#file.truncate(0);
    this.received = 0;
    this.#mark = 0;
    this.#head = Buffer.alloc(0);
    this.#hashes = this.#expected.digests.map(({ algorithm }) => startHash(algorithm, this.#expected.size));
    await this.#sink?.close();
    this.#refusal = undefined;
    this.#sink = await this.#options.sink?.();
  }

  /** Small chunks are gathered; those that came before an error are stored too. */
  async #receive(response: HubResponse): Promise<void> {
    let gathered: Uint8Array[] = [];
    let bytes = 0;
    const store = async () => {
      const piece = gathered.length === 1 ? asBuffer(gathered[0]!) : Buffer.concat(gathered);
      gathered = [];
      bytes = 0;
      if (piece.length > 0) await this.#store(piece);
    };
    try {
      for (let chunk = await response.next(); chunk; chunk = await response.next()) {
        gathered.push(chunk);
        bytes += chunk.length;
        this.#options.onBytes(this.received + bytes);
        if (bytes >= PIECE) await store();
        if (this.received > this.#expected.size) return;
      }
    } finally {
      await store();
    }
  }

  /** The piece is written while it is hashed and handed on, and the next one is awaited. */
  async #store(piece: Buffer): Promise<void> {
    await this.#writing;
    this.#writing = this.#write(piece, this.received);
    this.#writing.catch(() => undefined);
    if (this.#head.length < HEAD_BYTES) this.#head = Buffer.concat([this.#head, piece.subarray(0, HEAD_BYTES)]);
    for (const hash of this.#hashes) hash.update(piece);
    this.received += piece.length;
    if (this.#refusal || !this.#sink) return;
    try {
      await this.#sink.push(piece);
    } catch (error) {
      this.#refusal = { error };
    }
  }

  async #write(piece: Buffer, position: number): Promise<void> {
    for (let at = 0; at < piece.length; )
      at += (await this.#file.write(piece, at, piece.length - at, position + at)).bytesWritten;
    this.#unflushed += piece.length;
    if (this.#unflushed < FLUSH_EVERY) return;
    this.#unflushed = 0;
    await this.#flushing;
    this.#flushing = this.#file.datasync();
    this.#flushing.catch(() => undefined);
  }
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
