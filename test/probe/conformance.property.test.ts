import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { probeUnderTest } from './programs.js';
import { answersOf, CANCEL, PREDICT, rawFrame, rawTensors, runRaw } from './raw.js';
import { writeSmallModel } from './small-model.js';

const program = probeUnderTest();
const parent = mkdtempSync(join(tmpdir(), 'laya-conformance-'));
let model = '';

beforeAll(async () => {
  model = await writeSmallModel(parent);
});
afterAll(() => rmSync(parent, { recursive: true, force: true }));

/** Bytes on the stream, and the answer that they must get; at most 8, so that no queue is full. */
interface Piece {
  readonly bytes: Buffer;
  readonly answer?: string;
}

const halves = (count: number) =>
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { minLength: count, maxLength: count })
    .map((bits) => Uint16Array.from(bits));
const tensors = fc.tuple(halves(33), halves(2));

/** Pieces by their number, which is the request's id. */
const piece = fc.oneof(
  tensors.map(
    (given) =>
      (id: number): Piece => ({ bytes: rawFrame(PREDICT, id, rawTensors(given)), answer: `${id} RESULT` }),
  ),
  fc.integer({ min: 1, max: 0xffff }).map((index) => (id: number): Piece => {
    return {
      bytes: rawFrame(PREDICT, id, rawTensors([new Uint16Array(33), new Uint16Array(2)], index)),
      answer: `${id} REQUEST_MODEL`,
    };
  }),
  fc
    .integer({ min: 0, max: 600 })
    .filter((length) => length !== 256)
    .map(
      (length) =>
        (id: number): Piece => ({ bytes: rawFrame(PREDICT, id, Buffer.alloc(length)), answer: `${id} REQUEST_SHAPE` }),
    ),
  fc.integer({ min: 1000, max: 0xffffffff }).map((id) => (): Piece => ({ bytes: rawFrame(CANCEL, id) })),
);

const whole = rawFrame(PREDICT, 99, rawTensors([new Uint16Array(33), new Uint16Array(2)]));
const changed = (index: number, byte: number): Buffer => {
  const bytes = Buffer.from(whole);
  bytes[index] = byte;
  return bytes;
};

/** How a stream ends, and the error that it must get. */
const ending = fc.oneof(
  fc.constant<Piece>({ bytes: Buffer.alloc(0) }),
  fc.integer({ min: 1, max: whole.length - 1 }).map((length): Piece => {
    return { bytes: whole.subarray(0, length), answer: '0 FRAME_TRUNCATED' };
  }),
  fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 0x3f })).map(([index, byte]): Piece => {
    return { bytes: changed(index, byte), answer: '0 FRAME_MAGIC' };
  }),
  fc
    .integer({ min: 0, max: 255 })
    .filter((kind) => kind !== PREDICT && kind !== CANCEL)
    .map((kind): Piece => ({ bytes: changed(4, kind), answer: '0 FRAME_KIND' })),
  fc.tuple(fc.integer({ min: 5, max: 7 }), fc.integer({ min: 1, max: 255 })).map(([index, byte]): Piece => {
    return { bytes: changed(index, byte), answer: '0 FRAME_RESERVED' };
  }),
  fc.integer({ min: 5, max: 255 }).map((byte): Piece => ({ bytes: changed(15, byte), answer: '0 FRAME_TOO_LARGE' })),
);

describe('any stream', () => {
  test('gets exactly the answers that the protocol says', async () => {
    const streams = fc.tuple(fc.array(piece, { maxLength: 8 }), ending);
    await fc.assert(
      fc.asyncProperty(streams, async ([makers, end]) => {
        const pieces = [...makers.map((make, index) => make(index + 1)), end];
        const run = await runRaw(program(), ['serve', model], Buffer.concat(pieces.map(({ bytes }) => bytes)));
        const expected = pieces.flatMap(({ answer }) => (answer === undefined ? [] : [answer]));
        expect(answersOf(run).sort()).toEqual(expected.sort());
        expect([run.code, run.rest.length]).toEqual([end.answer === undefined ? 0 : 2, 0]);
      }),
      { numRuns: 25 },
    );
  });

  test('of noise ends with one error', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 300 }), async (noise) => {
        fc.pre(Buffer.from(noise.subarray(0, 4)).toString('latin1') !== 'LAYP');
        const run = await runRaw(program(), ['serve', model], noise);
        expect(answersOf(run)).toEqual([noise.length < 16 ? '0 FRAME_TRUNCATED' : '0 FRAME_MAGIC']);
        expect(run.code).toBe(2);
      }),
      { numRuns: 10 },
    );
  });
});
