const f32 = new Float32Array(1);
const u32 = new Uint32Array(f32.buffer);

/** float32 bits of 2^16, 2^-14 (the smallest normal half) and 2^-25 (half of the smallest half). */
const TOO_LARGE = 0x47800000;
const SMALLEST_NORMAL = 0x38800000;
const HALF_OF_SMALLEST = 0x33000000;

/**
 * Bits of the half-precision number nearest to a float32 value, ties to even. From 65520 on the result is infinity,
 * as in NumPy; NaN stays NaN.
 */
export function toHalfBits(value: number): number {
  f32[0] = value;
  const bits = u32[0]!;
  const sign = (bits >>> 16) & 0x8000;
  const size = bits & 0x7fffffff;
  if (size >= TOO_LARGE) return sign | (size > 0x7f800000 ? 0x7e00 : 0x7c00);
  // Adding "half a step minus one, plus the last kept bit" carries exactly when the nearest even neighbour is above.
  if (size >= SMALLEST_NORMAL) return sign | ((size - 0x38000000 + 0xfff + ((size >>> 13) & 1)) >>> 13);
  if (size <= HALF_OF_SMALLEST) return sign;
  const shift = 126 - (size >>> 23);
  const significand = (size & 0x7fffff) | 0x800000;
  const kept = significand >>> shift;
  const rest = significand & ((1 << shift) - 1);
  const middle = 1 << (shift - 1);
  return sign | (kept + (rest > middle || (rest === middle && (kept & 1) === 1) ? 1 : 0));
}

let table: Float32Array | undefined;

/** The 65,536 half-precision numbers, by their bits; made on first use. */
function halves(): Float32Array {
  if (table) return table;
  table = new Float32Array(65536);
  for (let bits = 0; bits < 0x8000; bits++) {
    const exponent = bits >>> 10;
    const fraction = bits & 0x3ff;
    let value = fraction * 2 ** -24;
    if (exponent === 31) value = fraction === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
    else if (exponent > 0) value = (1024 + fraction) * 2 ** (exponent - 25);
    table[bits] = value;
    table[bits | 0x8000] = -value;
  }
  return table;
}

/** Half-precision numbers, given by their bits, as float32 values. Exact. */
export function widenHalf(bits: Uint16Array): Float32Array {
  const values = halves();
  const wide = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) wide[i] = values[bits[i]!]!;
  return wide;
}

/** Rounds every value to the nearest half-precision number, in place, and returns the same array. */
export function roundToHalf(values: Float32Array): Float32Array {
  const rounded = halves();
  for (let i = 0; i < values.length; i++) values[i] = rounded[toHalfBits(values[i]!)]!;
  return values;
}
