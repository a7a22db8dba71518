import { inflateRawSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { DeflateChunk, deflateBound } from '../../../registry/archive/deflate.js';

const deflate = new DeflateChunk();

/** Bytes of pieces that repeat, run, or are noise: what literals, matches and stored blocks are made of. */
const content = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 400 }),
      fc
        .tuple(fc.uint8Array({ minLength: 1, maxLength: 40 }), fc.integer({ min: 1, max: 60 }))
        .map(([piece, times]) => Buffer.concat(Array<Uint8Array>(times).fill(piece))),
      fc
        .tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 1, max: 40_000 }))
        .map(([byte, times]) => Buffer.alloc(times, byte)),
    ),
    { maxLength: 12 },
  )
  .map((pieces) => Buffer.concat(pieces));

describe('DeflateChunk', () => {
  it('writes anything so that zlib reads it back', () => {
    fc.assert(
      fc.property(content, (input) => {
        const out = new Uint8Array(deflateBound(input.length));
        const written = deflate.compress(input, out);
        expect(written).toBeLessThanOrEqual(out.length);
        const whole = Buffer.concat([out.subarray(0, written), Uint8Array.of(1, 0, 0, 0xff, 0xff)]);
        expect(inflateRawSync(whole).equals(input)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});
