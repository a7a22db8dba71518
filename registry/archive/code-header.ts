import { huffmanCode } from './huffman.js';

/** Order in which deflate sends the lengths of the code that the other codes are sent with. */
const CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/** Bits that follow the symbols 16 (the last length again), 17 and 18 (zeros). */
const EXTRA_BITS = [2, 3, 7];

/**
 * A block's two codes as deflate sends them: the lengths, run-length coded, under a code of their own. Made anew for
 * each block in the same memory.
 */
export class CodeHeader {
  /** Bits to write, each entry `value << 4 | how many`. */
  readonly fields = new Uint32Array(1024);
  count = 0;
  /** Sum of all fields' bits. */
  bits = 0;
  /** Symbols of the run-length code, each `extra << 5 | symbol`. */
  readonly #runs = new Uint32Array(320);
  #runCount = 0;
  readonly #lengths = new Uint8Array(320);
  readonly #frequencies = new Uint32Array(19);

  /** Codes are those of `huffmanCode`: 286 literals and lengths, 30 distances. */
  fill(literals: Uint32Array, distances: Uint32Array): void {
    const [literalCount, distanceCount] = [usedLength(literals, 257), usedLength(distances, 1)];
    for (let i = 0; i < literalCount; i++) this.#lengths[i] = literals[i]! & 15;
    for (let i = 0; i < distanceCount; i++) this.#lengths[literalCount + i] = distances[i]! & 15;
    this.#findRuns(literalCount + distanceCount);
    const code = huffmanCode(this.#frequencies, 7);
    let sent = 19;
    while (sent > 4 && code[CODE_ORDER[sent - 1]!] === 0) sent--;
    this.count = 0;
    this.bits = 0;
    this.#field(literalCount - 257, 5);
    this.#field(distanceCount - 1, 5);
    this.#field(sent - 4, 4);
    for (let i = 0; i < sent; i++) this.#field(code[CODE_ORDER[i]!]! & 15, 3);
    for (let i = 0; i < this.#runCount; i++) {
      const symbol = this.#runs[i]! & 31;
      this.#field(code[symbol]! >> 4, code[symbol]! & 15);
      if (symbol >= 16) this.#field(this.#runs[i]! >> 5, EXTRA_BITS[symbol - 16]!);
    }
  }

  #field(value: number, bits: number): void {
    this.fields[this.count++] = (value << 4) | bits;
    this.bits += bits;
  }

  #findRuns(count: number): void {
    this.#runCount = 0;
    this.#frequencies.fill(0);
    for (let i = 0; i < count; ) {
      const value = this.#lengths[i]!;
      let run = 1;
      while (i + run < count && this.#lengths[i + run] === value) run++;
      i += run;
      if (value !== 0) {
        this.#run(value, 0);
        run--;
      }
      while (run >= 3) {
        const most = Math.min(run, value === 0 ? 138 : 6);
        if (value !== 0) this.#run(16, most - 3);
        else if (most > 10) this.#run(18, most - 11);
        else this.#run(17, most - 3);
        run -= most;
      }
      for (; run > 0; run--) this.#run(value, 0);
    }
  }

  #run(symbol: number, extra: number): void {
    this.#runs[this.#runCount++] = (extra << 5) | symbol;
    this.#frequencies[symbol]!++;
  }
}

/** Entries up to the last that is used, but at least so many. */
function usedLength(code: Uint32Array, least: number): number {
  let count = code.length;
  while (count > least && code[count - 1] === 0) count--;
  return count;
}
