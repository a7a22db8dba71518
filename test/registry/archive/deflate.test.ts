import { createHash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { DeflateChunk, deflateBound } from '../../../registry/archive/deflate.js';
import { huffmanCode } from '../../../registry/archive/huffman.js';

const LAST_BLOCK = Uint8Array.of(1, 0, 0, 0xff, 0xff);

/** Numbers that are the same everywhere. */
function noise(bytes: number, mask = 0xff): Uint8Array {
  let state = 1;
  return Uint8Array.from({ length: bytes }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 16) & mask;
  });
}

function deflated(input: Uint8Array): Buffer {
  const out = new Uint8Array(deflateBound(input.length));
  const written = new DeflateChunk().compress(input, out);
  return Buffer.concat([out.subarray(0, written), LAST_BLOCK]);
}

const text = Buffer.from(
  Array.from(
    { length: 4000 },
    (_, i) => `  tensor<fp16, [1, 128, 1, 64]> x_${i} = conv(weight = w_${i}, x = x_${i - 1});\n`,
  ).join(''),
);
/** Like weights: every second byte almost constant, the other noise. */
const weights = noise(300_000).map((byte, i) => (i % 2 === 0 ? byte : 0x28 | (byte & 7)));

describe('DeflateChunk', () => {
  const inputs: [string, Uint8Array][] = [
    ['nothing', new Uint8Array(0)],
    ['one byte', Uint8Array.of(7)],
    ['three bytes', Uint8Array.of(1, 2, 3)],
    ['zeros', new Uint8Array(1 << 20)],
    ['one block and a byte', noise(32769)],
    ['noise', noise(1 << 20)],
    ['weights', weights],
    ['text', text],
    [
      'all lengths of matches',
      Buffer.concat(Array.from({ length: 300 }, (_, i) => Buffer.concat([noise(i), Buffer.of(i)]))),
    ],
    ["matches at the window's edge", Buffer.concat([noise(300), new Uint8Array(32768 - 300), noise(300), noise(300)])],
    ['noise with text after it', Buffer.concat([noise(500_000), text.subarray(0, 500_000)])],
  ];

  it.each(inputs)('writes %s so that zlib reads it back', (_what, input) => {
    expect(inflateRawSync(deflated(input)).equals(input)).toBe(true);
  });

  it.each([
    ['weights', weights],
    ['text', text],
    ['noise', noise(1 << 20)],
    ['zeros', new Uint8Array(1 << 20)],
  ])('makes %s as small as zlib at level 9, within 1 %%', (_what, input) => {
    expect(deflated(input).length).toBeLessThan(deflateRawSync(input, { level: 9, memLevel: 9 }).length * 1.01 + 64);
  });

  it('never needs more room than it says', () => {
    for (const bytes of [0, 1, 100, 32767, 32768, 32769, 65535, 65536, 100_000, 1 << 20])
      expect(() => deflated(noise(bytes))).not.toThrow();
  });

  // A11: these very bytes, with any Node, on any processor.
  it('gives the bytes that it has always given', () => {
    const all = Buffer.concat([
      deflated(text),
      deflated(weights),
      deflated(noise(70_000)),
      deflated(new Uint8Array(5000)),
    ]);
    expect(createHash('sha256').update(all).digest('hex')).toBe(
      'f6bdba57920eaca8aee69ed40f71a04d3e840239bb7c1bf21182bfeba253f99d',
    );
  });

  it('does not remember the chunk before', () => {
    const deflate = new DeflateChunk();
    const out = new Uint8Array(deflateBound(text.length));
    const first = Buffer.from(out.subarray(0, deflate.compress(text, out)));
    deflate.compress(weights, new Uint8Array(deflateBound(weights.length)));
    expect(Buffer.from(out.subarray(0, deflate.compress(text, out))).equals(first)).toBe(true);
  });
});

describe('huffmanCode', () => {
  it('keeps every length within the limit and the code complete', () => {
    const fibonacci = [1, 1];
    for (let i = 2; i < 40; i++) fibonacci.push(fibonacci[i - 1]! + fibonacci[i - 2]!);
    for (const [frequencies, limit] of [
      [Uint32Array.from(fibonacci.slice(0, 30)), 15],
      [Uint32Array.from(fibonacci.slice(0, 19)), 7],
    ] as const) {
      const lengths = Array.from(huffmanCode(frequencies, limit), (entry) => entry & 15);
      expect(Math.max(...lengths)).toBe(limit);
      expect(lengths.reduce((sum, bits) => sum + 2 ** -bits, 0)).toBe(1);
    }
  });

  it('gives two symbols a code when fewer occur', () => {
    const used = (frequencies: number[]) => Array.from(huffmanCode(Uint32Array.from(frequencies), 15), (e) => e & 15);
    expect(used([0, 0, 0])).toEqual([1, 1, 0]);
    expect(used([0, 0, 9])).toEqual([1, 0, 1]);
    expect(used([5, 0, 0])).toEqual([1, 1, 0]);
  });
});
