import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { toHalfBits, widenHalf } from '../../../runtime/float16.js';
import { narrowInto } from '../../../runtime/probe/halves.js';
import { KERNEL_ELEMENTS } from '../../../runtime/probe/narrow-kernel.js';

/** float32 values by their bits, so that subnormals, NaN and infinities occur. */
const float = fc.integer({ min: 0, max: 0xffffffff }).map((bits) => new Float32Array(Uint32Array.of(bits).buffer)[0]!);

function narrow(values: Float32Array): number[] {
  const target = new Uint16Array(values.length);
  narrowInto(values, target);
  return Array.from(target);
}

describe('narrowing many values', () => {
  test('gives what narrowing one value gives', () => {
    fc.assert(
      fc.property(fc.array(float, { maxLength: 200 }), (list) => {
        const values = Float32Array.from(list);
        expect(narrow(values)).toEqual(Array.from(values, toHalfBits));
      }),
    );
  });

  test('is right at every edge', () => {
    const edges = [
      0,
      2 ** -25,
      2 ** -24,
      2 ** -14,
      1,
      65504,
      65519.99,
      65520,
      65536,
      Number.POSITIVE_INFINITY,
      Number.NaN,
    ];
    const around = edges.flatMap((edge) => [edge, edge * (1 + 2 ** -23), edge * (1 - 2 ** -23)]);
    const values = Float32Array.from([...around, ...around.map((value) => -value)]);
    expect(narrow(values)).toEqual(Array.from(values, toHalfBits));
  });

  test('gives every half back, whatever its sign', () => {
    const bits = Uint16Array.from({ length: 0x10000 }, (_, i) => i).filter((one) => (one & 0x7fff) <= 0x7c00);
    expect(narrow(widenHalf(bits))).toEqual(Array.from(bits));
  });

  test('takes any number of values: less than a step, and more than the kernel holds', () => {
    for (const length of [0, 1, 7, 8, 9, KERNEL_ELEMENTS - 1, KERNEL_ELEMENTS, KERNEL_ELEMENTS + 9]) {
      const values = Float32Array.from({ length }, (_, i) => Math.sin(i + length) * 70_000);
      expect(narrow(values)).toEqual(Array.from(values, toHalfBits));
    }
  });

  test('reads a part of an array where it lies, and writes nothing beside its target', () => {
    const values = Float32Array.of(9, 1, -2, 9).subarray(1, 3);
    const around = new Uint16Array(6).fill(7);
    narrowInto(values, around.subarray(1, 3));
    expect(Array.from(around)).toEqual([7, 0x3c00, 0xc000, 7, 7, 7]);
  });
});
