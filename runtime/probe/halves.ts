import { toHalfBits } from '../float16.js';

/** float32 bits of 2^-14, of 2^16, and of 2^-25. */
const SMALLEST_NORMAL = 0x38800000;
const NORMALS = 0x47800000 - SMALLEST_NORMAL;
const HALF_OF_SMALLEST = 0x33000000;

/**
 * Writes the half-precision bits of every value to `target`, by the rules of `toHalfBits`, several times as fast: it
 * works on the values' own bits.
 */
export function narrowInto(values: Float32Array, target: Uint16Array): void {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let i = 0; i < bits.length; i++) {
    const value = bits[i]!;
    const size = value & 0x7fffffff;
    const sign = (value >>> 16) & 0x8000;
    if ((size - SMALLEST_NORMAL) >>> 0 < NORMALS) {
      target[i] = sign | ((size - 0x38000000 + 0xfff + ((size >>> 13) & 1)) >>> 13);
    } else target[i] = size <= HALF_OF_SMALLEST ? sign : toHalfBits(values[i]!);
  }
}
