/**
 * One deflate block's content as sequences: so many literals, then a match (length 0 at a block's end: none).
 * The literals are not copied, they are the input's own bytes.
 */
export interface Sequences {
  count: number;
  readonly literals: Uint32Array;
  readonly lengths: Uint16Array;
  readonly distances: Uint16Array;
}

export const newSequences = (): Sequences => ({
  count: 0,
  literals: new Uint32Array(MAX_SYMBOLS),
  lengths: new Uint16Array(MAX_SYMBOLS),
  distances: new Uint16Array(MAX_SYMBOLS),
});

/** Symbols in one block, as many as a stored block has bytes. Fewer follow the data closer, more save headers and time. */
const MAX_SYMBOLS = 65535;
const WINDOW = 32768;
const MIN_MATCH = 4;
const MAX_MATCH = 258;
const HASH_BITS = 15;
/** Candidates looked at for one position; an eighth of it once a good match is at hand. */
const MAX_CHAIN = 256;
const GOOD_MATCH = 32;
const NICE_MATCH = 258;
/** After so many positions without a match, and again after as many, the search takes longer steps. */
const PATIENCE_SHIFT = 8;
const MAX_STEP = 48;

/**
 * Finds repetitions within one chunk, by hash chains with one position of look-ahead. Where nothing repeats, as in
 * weights, it searches fewer and fewer positions, so that such data passes at the speed of a copy.
 */
export class MatchFinder {
  readonly #head = new Int32Array(1 << HASH_BITS);
  readonly #previous = new Int32Array(WINDOW);
  #input: Uint8Array = new Uint8Array(0);
  #at = 0;
  #misses = 0;
  /** Every position before this one that will ever be linked is linked. */
  #linked = 0;
  #length = 0;
  #distance = 0;

  start(input: Uint8Array): void {
    this.#head.fill(-1);
    this.#input = input;
    this.#at = 0;
    this.#misses = 0;
    this.#linked = 0;
  }

  /** Fills the sequences of the next block and returns how many bytes it covers; 0 at the input's end. */
  nextBlock(block: Sequences): number {
    const start = this.#at;
    const end = this.#input.length;
    let symbols = 0;
    let run = 0;
    block.count = 0;
    while (this.#at < end && symbols < MAX_SYMBOLS) {
      if (!this.#search(this.#at, MIN_MATCH - 1)) {
        const step = Math.min(1 + (this.#misses++ >> PATIENCE_SHIFT), MAX_STEP, end - this.#at, MAX_SYMBOLS - symbols);
        this.#at += step;
        run += step;
        symbols += step;
        continue;
      }
      const passed = this.#preferLater();
      run += passed;
      symbols += passed + 1;
      push(block, run, this.#length, this.#distance);
      this.#insertUpTo(this.#at + this.#length);
      this.#at += this.#length;
      run = 0;
      this.#misses = 0;
    }
    if (run > 0) push(block, run, 0, 0);
    return this.#at - start;
  }

  /** As long as the match at the next position is longer, the one at hand becomes a literal. Returns how many did. */
  #preferLater(): number {
    let passed = 0;
    while (this.#length < NICE_MATCH && this.#at + 1 < this.#input.length) {
      const [length, distance] = [this.#length, this.#distance];
      if (!this.#search(this.#at + 1, length)) {
        this.#length = length;
        this.#distance = distance;
        break;
      }
      this.#at++;
      passed++;
    }
    return passed;
  }

  /** Looks for a match at `at` longer than `beat`, and remembers the position. */
  #search(at: number, beat: number): boolean {
    const input = this.#input;
    const limit = Math.min(MAX_MATCH, input.length - at);
    if (limit < MIN_MATCH) return false;
    let found = false;
    let best = beat;
    const slot = hashAt(input, at);
    let candidate = this.#head[slot]!;
    this.#previous[at & (WINDOW - 1)] = candidate;
    this.#head[slot] = at;
    this.#linked = at + 1;
    const oldest = at - WINDOW + 1;
    for (let tries = beat >= GOOD_MATCH ? MAX_CHAIN >> 3 : MAX_CHAIN; candidate >= oldest && candidate >= 0; tries--) {
      if (tries === 0 || best >= limit) break;
      if (input[candidate + best] === input[at + best]) {
        const length = commonLength(input, candidate, at, limit);
        if (length > best) {
          best = length;
          found = true;
          this.#length = length;
          this.#distance = at - candidate;
        }
      }
      const next = this.#previous[candidate & (WINDOW - 1)]!;
      if (next >= candidate) break;
      candidate = next;
    }
    return found;
  }

  #insertUpTo(to: number): void {
    const input = this.#input;
    const last = Math.min(to, input.length - MIN_MATCH + 1);
    for (let at = this.#linked; at < last; at++) {
      const slot = hashAt(input, at);
      this.#previous[at & (WINDOW - 1)] = this.#head[slot]!;
      this.#head[slot] = at;
    }
    this.#linked = to;
  }
}

function push(block: Sequences, literals: number, length: number, distance: number): void {
  block.literals[block.count] = literals;
  block.lengths[block.count] = length;
  block.distances[block.count++] = distance;
}

function hashAt(input: Uint8Array, at: number): number {
  const word = input[at]! | (input[at + 1]! << 8) | (input[at + 2]! << 16) | (input[at + 3]! << 24);
  return Math.imul(word, 0x9e3779b1) >>> (32 - HASH_BITS);
}

function commonLength(input: Uint8Array, a: number, b: number, limit: number): number {
  let length = 0;
  while (length < limit && input[a + length] === input[b + length]) length++;
  return length;
}
