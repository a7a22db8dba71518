import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { toHalfBits, widenHalf } from '../../runtime/float16.js';

const finite = widenHalf(Uint16Array.from({ length: 0x7c00 }, (_, i) => i));

/** The nearest half by search among all of them; of two equally near ones the one with the even last bit. */
function nearest(value: number): number {
  let low = 0;
  let high = finite.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (finite[middle]! < value) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return 0;
  const below = value - finite[low - 1]!;
  const above = finite[low]! - value;
  return below < above || (below === above && low % 2 === 1) ? low - 1 : low;
}

test('rounds to the nearest half, ties to even', () => {
  const value = fc.oneof(
    fc.float({ min: 0, max: 65504, noNaN: true }),
    fc.float({ min: 0, max: Math.fround(2 ** -13), noNaN: true }),
    fc.nat({ max: 0x7bfe }).map((i) => Math.fround((finite[i]! + finite[i + 1]!) / 2)),
  );
  fc.assert(
    fc.property(value, (one) => {
      expect(toHalfBits(one)).toBe(nearest(Math.abs(one)) | (Object.is(one, -0) ? 0x8000 : 0));
      expect(toHalfBits(-one) & 0x7fff).toBe(nearest(Math.abs(one)));
    }),
    { numRuns: 5000 },
  );
});
