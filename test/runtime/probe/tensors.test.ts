import { describe, expect, test } from '@jest/globals';
import { readHello } from '../../../runtime/probe/records.js';
import { layoutOf, readResult } from '../../../runtime/probe/tensors.js';
import { codeOf } from '../../workspace.js';

const LIMIT = 1 << 20;
const OUTPUT = layoutOf([{ name: 'y', shape: [2] }], LIMIT)!;

describe('a layout', () => {
  test('puts every tensor at a multiple of 64', () => {
    const specs = [33, 32, 1].map((count, i) => ({ name: `t${i}`, shape: [1, count] }));
    const layout = layoutOf(specs, LIMIT);
    expect(layout?.tensors.map(({ offset, count }) => [offset, count])).toEqual([
      [64, 33],
      [192, 32],
      [256, 1],
    ]);
    expect(layout?.length).toBe(320);
    expect(layoutOf(specs, 319)).toBeUndefined();
  });

  test('has no memory for shapes that nothing could hold', () => {
    for (const shape of [[LIMIT], [2 ** 53 - 1], [2 ** 53 - 1, 2 ** 53 - 1], Array.from({ length: 40 }, () => 2 ** 50)])
      expect(layoutOf([{ name: 'x', shape }], LIMIT)).toBeUndefined();
  });
});

describe('a result', () => {
  const payload = (change: (bytes: Buffer) => void): Buffer => {
    const bytes = Buffer.from(new ArrayBuffer(128));
    bytes.writeUInt16LE(3, 0);
    bytes.writeUInt16LE(1, 2);
    bytes.writeUInt32LE(7, 4);
    bytes.writeUInt32LE(9, 8);
    bytes.writeUInt16LE(0x3c00, 64);
    change(bytes);
    return bytes;
  };
  const code = (change: (bytes: Buffer) => void) => codeOf(() => readResult(payload(change), 3, OUTPUT));

  test('is read with its times', () => {
    const { outputs, predicted, waited } = readResult(
      payload(() => undefined),
      3,
      OUTPUT,
    );
    expect({ ...outputs }).toEqual({ y: Float32Array.of(1, 0) });
    expect([predicted, waited]).toEqual([7, 9]);
  });

  test('of another model, with other tensors, or with bytes that must be zero is refused', async () => {
    expect(await code((bytes) => bytes.writeUInt16LE(2, 0))).toBe('PROBE_PROTOCOL');
    expect(await code((bytes) => bytes.writeUInt16LE(2, 2))).toBe('PROBE_PROTOCOL');
    expect(await code((bytes) => bytes.writeUInt8(1, 63))).toBe('PROBE_PROTOCOL');
    expect(await codeOf(() => readResult(Buffer.alloc(64), 3, OUTPUT))).toBe('PROBE_PROTOCOL');
  });
});

describe('HELLO', () => {
  test('is bounded by what this side takes', () => {
    const limits = { frame: 2 ** 50, queue: 2 ** 40 };
    const hello = { name: 'laya-probe', version: '9', protocol: 1, core_ml: 'apple', units: 'all', limits };
    const read = readHello(Buffer.from(JSON.stringify(hello)), 'all', ['apple']);
    expect(read.limits).toEqual({ frame: 64 << 20, queue: 64 });
  });
});
