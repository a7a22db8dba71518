import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ProbeError } from '../../../runtime/probe/errors.js';
import { encodeFrame, FrameReader } from '../../../runtime/probe/frames.js';

const frame = fc.record({
  kind: fc.integer({ min: 1, max: 4 }),
  id: fc.integer({ min: 0, max: 0xffffffff }),
  payload: fc.uint8Array({ maxLength: 100 }),
});

/** The bytes in pieces: the places to cut, each as a share of the length. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const edges = [0, ...places.map((place) => Math.floor(place * bytes.length)).sort((a, b) => a - b), bytes.length];
  return edges.slice(1).map((edge, index) => bytes.subarray(edges[index]!, edge));
}

function reader(): FrameReader {
  const made = new FrameReader();
  made.resultBytes = 1000;
  return made;
}

describe('a frame reader', () => {
  test('gives the same frames however the bytes are cut', () => {
    const places = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 5 }), places, (frames, at) => {
        const bytes = Buffer.concat(frames.map(({ kind, id, payload }) => encodeFrame(kind, id, payload)));
        const one = reader();
        const found = cut(bytes, at).flatMap((piece) => [...one.push(piece)]);
        one.end();
        expect(found.map(({ kind, id, payload }) => ({ kind, id, payload: Uint8Array.from(payload) }))).toEqual(frames);
      }),
    );
  });

  test('gives frames or refuses with its own error, whatever the bytes', () => {
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 3 }),
        fc.uint8Array({ maxLength: 60 }),
        fc.nat(),
        (frames, noise, where) => {
          const bytes = Buffer.concat(frames.map(({ kind, id, payload }) => encodeFrame(kind, id, payload)));
          const at = where % (bytes.length + 1);
          const hostile = Buffer.concat([bytes.subarray(0, at), noise, bytes.subarray(at)]);
          try {
            const one = reader();
            for (const { payload } of one.push(hostile)) expect(payload.length).toBeLessThanOrEqual(4 << 20);
            one.end();
          } catch (error) {
            expect(error).toBeInstanceOf(ProbeError);
            expect(error).toMatchObject({ code: 'PROBE_PROTOCOL' });
          }
        },
      ),
    );
  });
});

describe('a header', () => {
  const refused = (change: (bytes: Buffer) => void, resultBytes = 1000): unknown => {
    const bytes = encodeFrame(3, 7, Buffer.alloc(64));
    change(bytes);
    const one = new FrameReader();
    one.resultBytes = resultBytes;
    try {
      return [...one.push(bytes)].length;
    } catch (error) {
      return (error as ProbeError).found;
    }
  };

  test('is refused as soon as it is wrong, before memory is taken', () => {
    expect(refused(() => undefined)).toBe(1);
    expect(refused((bytes) => bytes.write('GET ', 'latin1'))).toMatch(/^FRAME_MAGIC/);
    expect(refused((bytes) => bytes.writeUInt8(0, 4))).toBe('FRAME_KIND: 0');
    expect(refused((bytes) => bytes.writeUInt8(16, 4))).toBe('FRAME_KIND: 16');
    expect(refused((bytes) => bytes.writeUInt8(1, 6))).toBe('FRAME_RESERVED');
    expect(refused((bytes) => bytes.writeUInt32LE(0xffffffff, 12))).toBe('FRAME_TOO_LARGE: 4294967295');
    expect(refused(() => undefined, 63)).toBe('FRAME_TOO_LARGE: 64');
    expect(refused((bytes) => bytes.writeUInt8(1, 4))).toBe(1);
  });
});
