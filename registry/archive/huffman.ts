/**
 * The canonical Huffman code for symbols with these frequencies, no length above `maxBits` (at most 15). Each entry is
 * `code << 4 | length`, the code's bits as deflate writes them, lowest first; a symbol that does not occur has length 0.
 * At least two symbols get a code, because some readers refuse a code with one.
 * The same frequencies give the same code everywhere: equal ones are ordered by symbol.
 */
export function huffmanCode(frequencies: Uint32Array, maxBits: number): Uint32Array {
  const used = usedSymbols(frequencies);
  const counts = limitLengths(depthCounts(frequencies, used), maxBits);
  const entries = new Uint32Array(frequencies.length);
  let next = used.length;
  for (let bits = 1; bits <= maxBits; bits++) for (let n = counts[bits]!; n > 0; n--) entries[used[--next]!] = bits;
  assignCodes(entries, counts, maxBits);
  return entries;
}

/** Symbols that occur, rarest first; filled up to two with the first that do not. */
function usedSymbols(frequencies: Uint32Array): Uint32Array {
  const keys = new Uint32Array(frequencies.length);
  let count = 0;
  for (let symbol = 0; symbol < frequencies.length; symbol++)
    if (frequencies[symbol]! > 0) keys[count++] = frequencies[symbol]! * SYMBOLS + symbol;
  for (let symbol = 0; count < 2; symbol++) if (frequencies[symbol] === 0) keys[count++] = symbol;
  const used = keys.subarray(0, count).sort();
  for (let i = 0; i < count; i++) used[i]! %= SYMBOLS;
  return used;
}

const SYMBOLS = 512;

/** How many leaves of the Huffman tree lie at each depth. Two queues, linear time. */
function depthCounts(frequencies: Uint32Array, used: Uint32Array): Uint32Array {
  const n = used.length;
  const nodes = 2 * n - 1;
  const sums = new Float64Array(nodes).fill(Number.POSITIVE_INFINITY);
  const parents = new Uint16Array(nodes);
  for (let i = 0; i < n; i++) sums[i] = Math.max(1, frequencies[used[i]!]!);
  let [leaf, inner] = [0, n];
  for (let node = n; node < nodes; node++) {
    let sum = 0;
    for (let side = 0; side < 2; side++) {
      const child = leaf < n && sums[leaf]! <= sums[inner]! ? leaf++ : inner++;
      parents[child] = node;
      sum += sums[child]!;
    }
    sums[node] = sum;
  }
  const depths = new Uint16Array(nodes);
  const counts = new Uint32Array(n + 1);
  for (let node = nodes - 2; node >= 0; node--) {
    depths[node] = depths[parents[node]!]! + 1;
    if (node < n) counts[depths[node]!]!++;
  }
  return counts;
}

/** Moves leaves that lie too deep up to `maxBits` and makes room for them, so that the code stays complete. */
function limitLengths(counts: Uint32Array, maxBits: number): Uint32Array {
  const limited = new Uint32Array(maxBits + 2);
  for (let depth = 1; depth < counts.length; depth++) limited[Math.min(depth, maxBits)]! += counts[depth]!;
  let taken = 0;
  for (let bits = 1; bits <= maxBits; bits++) taken += limited[bits]! * 2 ** (maxBits - bits);
  for (; taken > 2 ** maxBits; taken--) {
    let bits = maxBits - 1;
    while (limited[bits] === 0) bits--;
    limited[bits]!--;
    limited[bits + 1]! += 2;
    limited[maxBits]!--;
  }
  return limited;
}

/** Puts each symbol's code beside its length: canonical order, bits reversed. */
function assignCodes(entries: Uint32Array, counts: Uint32Array, maxBits: number): void {
  const next = new Uint32Array(maxBits + 2);
  for (let bits = 1; bits <= maxBits; bits++) next[bits + 1] = (next[bits]! + counts[bits]!) << 1;
  for (let symbol = 0; symbol < entries.length; symbol++) {
    const bits = entries[symbol]!;
    if (bits > 0) entries[symbol] = (reversed(next[bits]!++, bits) << 4) | bits;
  }
}

function reversed(code: number, bits: number): number {
  let v = ((code & 0x5555) << 1) | ((code >> 1) & 0x5555);
  v = ((v & 0x3333) << 2) | ((v >> 2) & 0x3333);
  v = ((v & 0x0f0f) << 4) | ((v >> 4) & 0x0f0f);
  v = ((v & 0x00ff) << 8) | (v >> 8);
  return v >> (16 - bits);
}
