import { describe, expect, test } from '@jest/globals';
import { erf } from '../../runtime/erf.js';

/** Values of Python's math.erf. */
const KNOWN: [number, number][] = [
  [1e-300, 1.1283791670955126e-300],
  [1e-10, 1.1283791670955126e-10],
  [0.001, 0.0011283787909692365],
  [0.1, 0.1124629160182849],
  [0.25, 0.2763263901682369],
  [0.5, 0.5204998778130465],
  [0.8, 0.7421009647076605],
  [0.84375, 0.7672256612323416],
  [1, 0.8427007929497149],
  [1.25, 0.9229001282564582],
  [1.5, 0.9661051464753108],
  [2, 0.9953222650189527],
  [2.4, 0.999311486103355],
  [2.4999999, 0.9995930477647266],
  [2.5, 0.999593047982555],
  [2.6, 0.9997639655834707],
  [3, 0.9999779095030014],
  [3.5, 0.9999992569016276],
  [4, 0.9999999845827421],
  [4.75, 0.9999999999815149],
  [5.5, 0.9999999999999927],
  [5.9, 0.9999999999999999],
  [6, 1],
  [28, 1],
];

describe('erf', () => {
  test.each(KNOWN)('is within 2e-15 of the exact value at %p, and odd', (x, value) => {
    expect(Math.abs(erf(x) - value)).toBeLessThan(2e-15);
    expect(erf(-x)).toBe(-erf(x));
  });

  test('keeps small values to full relative precision', () => {
    expect(erf(1e-300) / 1.1283791670955126e-300).toBeCloseTo(1, 14);
  });

  test('handles zero, infinity and NaN', () => {
    expect(erf(0)).toBe(0);
    expect(Object.is(erf(-0), -0)).toBe(true);
    expect(erf(Number.POSITIVE_INFINITY)).toBe(1);
    expect(erf(Number.NEGATIVE_INFINITY)).toBe(-1);
    expect(erf(Number.NaN)).toBeNaN();
  });
});
