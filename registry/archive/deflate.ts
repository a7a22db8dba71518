import { CodeHeader } from './code-header.js';
import { huffmanCode } from './huffman.js';
import { MatchFinder, newSequences, type Sequences } from './matches.js';

/** Numbers of RFC 1951. */
const END_OF_BLOCK = 256;
const MAX_STORED = 65535;
/** For each match length 3..258: its symbol, and the bits that follow it. */
const LENGTH_SYMBOL = new Uint16Array(259);
const LENGTH_BITS = new Uint8Array(286);
const LENGTH_BASE = new Uint16Array(286);
const DISTANCE_BITS = new Uint8Array(30);
const DISTANCE_BASE = new Uint16Array(30);
fillTables();

function fillTables(): void {
  for (let symbol = 257, base = 3; symbol < 285; symbol++) {
    const bits = symbol < 265 ? 0 : (symbol - 261) >> 2;
    LENGTH_BITS[symbol] = bits;
    LENGTH_BASE[symbol] = base;
    LENGTH_SYMBOL.fill(symbol, base, base + (1 << bits));
    base += 1 << bits;
  }
  LENGTH_SYMBOL[258] = 285;
  LENGTH_BASE[285] = 258;
  for (let symbol = 0, base = 1; symbol < 30; symbol++) {
    const bits = symbol < 4 ? 0 : (symbol - 2) >> 1;
    DISTANCE_BITS[symbol] = bits;
    DISTANCE_BASE[symbol] = base;
    base += 1 << bits;
  }
}

function distanceSymbol(distance: number): number {
  if (distance <= 4) return distance - 1;
  const top = 31 - Math.clz32(distance - 1);
  return 2 * top + (((distance - 1) >> (top - 1)) & 1);
}

/** Room that `DeflateChunk.compress` needs at most for so many bytes of input. */
export const deflateBound = (bytes: number): number => bytes + 5 * (Math.ceil(bytes / MAX_STORED) + 1) + 16;

/**
 * Compresses chunks, each for itself: nothing refers to an earlier chunk, so they can be done in any order.
 * Written here rather than taken from zlib, whose output depends on its version and on the processor: an archive has to
 * be the same bytes on any machine and with any Node (protocol §11.1).
 */
export class DeflateChunk {
  readonly #finder = new MatchFinder();
  readonly #block = newSequences();
  readonly #header = new CodeHeader();
  readonly #frequencies = new Uint32Array(286);
  readonly #distanceFrequencies = new Uint32Array(30);
  readonly #otherHalf = new Uint32Array(768);
  #out: Uint8Array = new Uint8Array(0);
  #at = 0;
  #bits = 0;
  #held = 0;

  /** Writes `input` as whole blocks, none of them the last one, that end on a byte. Returns how many bytes. */
  compress(input: Uint8Array, out: Uint8Array): number {
    this.#out = out;
    this.#at = 0;
    this.#finder.start(input);
    for (let from = 0; ; ) {
      const covered = this.#finder.nextBlock(this.#block);
      if (covered === 0) break;
      this.#writeBlock(input.subarray(from, from + covered));
      from += covered;
    }
    if (this.#held > 0) this.#writeStored(new Uint8Array(0));
    return this.#at;
  }

  #writeBlock(bytes: Uint8Array): void {
    this.#count(bytes);
    if (this.#block.count === 1 && isNoise(this.#frequencies, bytes.length)) {
      this.#writeStored(bytes);
      return;
    }
    const literals = huffmanCode(this.#frequencies, 15);
    const distances = huffmanCode(this.#distanceFrequencies, 15);
    this.#header.fill(literals, distances);
    const cost = 3 + this.#header.bits + this.#cost(literals, distances);
    if (cost > 8 * bytes.length + 34 * Math.ceil(bytes.length / MAX_STORED)) {
      this.#writeStored(bytes);
      return;
    }
    this.#put(0b100, 3);
    for (let i = 0; i < this.#header.count; i++) this.#put(this.#header.fields[i]! >> 4, this.#header.fields[i]! & 15);
    this.#writeSequences(bytes, this.#block, literals, distances);
  }

  #count(bytes: Uint8Array): void {
    const { count, literals, lengths, distances } = this.#block;
    const frequencies = this.#frequencies.fill(0);
    const distanceFrequencies = this.#distanceFrequencies.fill(0);
    let at = 0;
    for (let i = 0; i < count; i++) {
      this.#countLiterals(bytes, at, at + literals[i]!);
      at += literals[i]! + lengths[i]!;
      if (lengths[i] === 0) continue;
      frequencies[LENGTH_SYMBOL[lengths[i]!]!]!++;
      distanceFrequencies[distanceSymbol(distances[i]!)]!++;
    }
    frequencies[END_OF_BLOCK] = 1;
  }

  /** Long runs are counted in two tables in turn: an addition need not wait for the one before it. */
  #countLiterals(bytes: Uint8Array, from: number, to: number): void {
    const frequencies = this.#frequencies;
    let at = from;
    if (to - from >= 1024) {
      const other = this.#otherHalf.fill(0);
      for (; at + 3 < to; at += 4) {
        frequencies[bytes[at]!]!++;
        other[bytes[at + 1]!]!++;
        other[256 + bytes[at + 2]!]!++;
        other[512 + bytes[at + 3]!]!++;
      }
      for (let i = 0; i < 256; i++) frequencies[i]! += other[i]! + other[256 + i]! + other[512 + i]!;
    }
    for (; at < to; at++) frequencies[bytes[at]!]!++;
  }

  #cost(literals: Uint32Array, distances: Uint32Array): number {
    let bits = 0;
    for (let i = 0; i < 286; i++) bits += this.#frequencies[i]! * ((literals[i]! & 15) + LENGTH_BITS[i]!);
    for (let i = 0; i < 30; i++) bits += this.#distanceFrequencies[i]! * ((distances[i]! & 15) + DISTANCE_BITS[i]!);
    return bits;
  }

  #writeSequences(bytes: Uint8Array, block: Sequences, literal: Uint32Array, distance: Uint32Array): void {
    let at = 0;
    for (let i = 0; i < block.count; i++) {
      const run = block.literals[i]!;
      this.#writeLiterals(bytes, at, at + run, literal);
      at += run;
      const length = block.lengths[i]!;
      if (length === 0) continue;
      const symbol = LENGTH_SYMBOL[length]!;
      this.#put(literal[symbol]! >> 4, literal[symbol]! & 15);
      this.#put(length - LENGTH_BASE[symbol]!, LENGTH_BITS[symbol]!);
      const far = distanceSymbol(block.distances[i]!);
      this.#put(distance[far]! >> 4, distance[far]! & 15);
      this.#put(block.distances[i]! - DISTANCE_BASE[far]!, DISTANCE_BITS[far]!);
      at += length;
    }
    this.#put(literal[END_OF_BLOCK]! >> 4, literal[END_OF_BLOCK]! & 15);
  }

  #writeLiterals(bytes: Uint8Array, from: number, to: number, code: Uint32Array): void {
    const out = this.#out;
    let [at, bits, held] = [this.#at, this.#bits, this.#held];
    for (let i = from; i < to; i++) {
      const entry = code[bytes[i]!]!;
      bits |= (entry >> 4) << held;
      held += entry & 15;
      if (held >= 16) {
        out[at] = bits;
        out[at + 1] = bits >> 8;
        at += 2;
        bits >>>= 16;
        held -= 16;
      }
    }
    this.#at = at;
    this.#bits = bits;
    this.#held = held;
  }

  #put(value: number, bits: number): void {
    this.#bits |= value << this.#held;
    this.#held += bits;
    if (this.#held < 16) return;
    this.#out[this.#at++] = this.#bits;
    this.#out[this.#at++] = this.#bits >> 8;
    this.#bits >>>= 16;
    this.#held -= 16;
  }

  /** Bytes as they are. With none it is the empty block that ends a chunk on a byte. */
  #writeStored(bytes: Uint8Array): void {
    let from = 0;
    do {
      const part = bytes.subarray(from, from + MAX_STORED);
      this.#put(0, 3);
      for (; this.#held > 0; this.#held -= 8, this.#bits >>>= 8) this.#out[this.#at++] = this.#bits;
      this.#held = 0;
      this.#bits = 0;
      for (const value of [part.length, ~part.length]) {
        this.#out[this.#at++] = value;
        this.#out[this.#at++] = value >> 8;
      }
      this.#out.set(part, this.#at);
      this.#at += part.length;
      from += part.length;
    } while (from < bytes.length);
  }
}

/** True when the bytes are spread so evenly that no code is worth its header. Integers only: the same everywhere. */
function isNoise(frequencies: Uint32Array, total: number): boolean {
  let pairs = 0;
  for (let i = 0; i < 256; i++) pairs += frequencies[i]! * frequencies[i]!;
  return pairs * 256 * 50 < total * (total * 51 + 256 * 50);
}
