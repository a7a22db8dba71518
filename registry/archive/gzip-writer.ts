import { crc32 } from 'node:zlib';
import { deflateBound } from './deflate.js';
import { type Deflater, openDeflater } from './deflate-pool.js';

/** Chunks are compressed each for itself. Their size decides over the bytes that come out, so it is fixed. */
const CHUNK = 1 << 20;
/** Deflate, no name, no time, no flags, system "unknown": the same everywhere (protocol §11.1). */
const HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
/** An empty last block: the chunks before it are not last ones. */
const LAST_BLOCK = Buffer.from([1, 0, 0, 0xff, 0xff]);

interface Slot {
  readonly input: Uint8Array;
  readonly output: Uint8Array;
  filled: number;
}

/**
 * Writes one gzip member, compressing chunks on several threads and giving them to `sink` in order.
 * Memory: about 2 MiB for each chunk under way. After an error only `close` may be called.
 */
export class GzipWriter {
  readonly #sink: (bytes: Uint8Array) => Promise<void>;
  readonly #deflater: Deflater;
  readonly #slots: Slot[];
  readonly #busy: Promise<void>[] = [];
  #next = 0;
  #crc = 0;
  #bytes = 0;
  #written: Promise<void> = Promise.resolve();

  constructor(threads: number, sink: (bytes: Uint8Array) => Promise<void>) {
    this.#sink = sink;
    this.#deflater = openDeflater(threads);
    this.#slots = Array.from({ length: this.#deflater.width + 1 }, newSlot);
    this.#written = sink(HEADER);
    this.#written.catch(() => undefined);
  }

  /** Takes bytes; they may be changed once the promise is fulfilled. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#crc = crc32(bytes, this.#crc);
    this.#bytes += bytes.length;
    for (let at = 0; at < bytes.length; ) {
      const slot = await this.#freeSlot();
      const part = bytes.subarray(at, at + CHUNK - slot.filled);
      slot.input.set(part, slot.filled);
      slot.filled += part.length;
      at += part.length;
      if (slot.filled === CHUNK) this.#send();
    }
  }

  /** Writes what is left and the trailer: CRC-32 and length of the content. */
  async end(): Promise<void> {
    if (this.#slots[this.#next]!.filled > 0) this.#send();
    const trailer = Buffer.alloc(8);
    trailer.writeUInt32LE(this.#crc, 0);
    trailer.writeUInt32LE(this.#bytes % 2 ** 32, 4);
    await this.#written;
    await this.#sink(Buffer.concat([LAST_BLOCK, trailer]));
  }

  /** Ends the threads. What is under way is lost. */
  async close(): Promise<void> {
    await this.#deflater.close();
  }

  async #freeSlot(): Promise<Slot> {
    await this.#busy[this.#next];
    return this.#slots[this.#next]!;
  }

  /** Sends the slot that is filled to be compressed; its output follows that of the slot before it. */
  #send(): void {
    const index = this.#next;
    const slot = this.#slots[index]!;
    const input = slot.input.subarray(0, slot.filled);
    const compressed = this.#deflater.compress({ slot: index, input, output: slot.output });
    const before = this.#written;
    const written = Promise.all([compressed, before]).then(([length]) => this.#sink(slot.output.subarray(0, length)));
    this.#written = written;
    this.#busy[index] = written.then(() => {
      slot.filled = 0;
    });
    this.#busy[index]!.catch(() => undefined);
    this.#next = (index + 1) % this.#slots.length;
  }
}

function newSlot(): Slot {
  const shared = (bytes: number): Uint8Array => new Uint8Array(new SharedArrayBuffer(bytes));
  return { input: shared(CHUNK), output: shared(deflateBound(CHUNK)), filled: 0 };
}
