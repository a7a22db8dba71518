import { describe, expect, test } from '@jest/globals';
import { roundToHalf, toHalfBits, widenHalf } from '../../runtime/float16.js';

/** float32 values and the bits NumPy's float16 gives them. */
const KNOWN: [number, number][] = [
  [0, 0],
  [1, 15360],
  [-1, 48128],
  [0.1, 11878],
  [-0.1, 44646],
  [1 / 3, 13653],
  [65504, 31743],
  [65519.99609375, 31743],
  [65520, 31744],
  [65536, 31744],
  [1e38, 31744],
  [2049, 26624],
  [2051, 26626],
  [4097, 27648],
  [6.103515625e-5, 1024],
  [6.0999998822808266e-5, 1023],
  [2 ** -24, 1],
  [2.9802322387695312e-8, 0],
  [2.980232594040899e-8, 1],
  [8.940696716308594e-8, 2],
  [1e-9, 0],
  [-3.0499999411404133e-5, 33280],
  [1.00048828125, 15360],
  [1.00146484375, 15362],
  [-10000, 61666],
];

describe('half precision', () => {
  test.each(KNOWN)('%p has the bits NumPy gives it', (value, bits) => {
    expect(toHalfBits(value)).toBe(bits);
  });

  test('widens every bit pattern and rounds it back to itself', () => {
    const bits = Uint16Array.from({ length: 65536 }, (_, i) => i);
    const wide = widenHalf(bits);
    const changed = [...bits].filter((one) => toHalfBits(wide[one]!) !== one && !Number.isNaN(wide[one]));
    expect(changed).toEqual([]);
    const notNumbers = [...wide].filter((value) => Number.isNaN(value)).length;
    expect(notNumbers).toBe(2 * 1023);
    expect([wide[0x3c00], wide[0x0001], wide[0x7bff], wide[0xfc00]]).toEqual([1, 2 ** -24, 65504, -Infinity]);
  });

  test('keeps NaN and the sign of zero', () => {
    const rounded = roundToHalf(Float32Array.of(Number.NaN, -0, -1e-9));
    expect(rounded[0]).toBeNaN();
    expect(Object.is(rounded[1], -0)).toBe(true);
    expect(Object.is(rounded[2], -0)).toBe(true);
  });
});
