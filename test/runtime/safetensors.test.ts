import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readTensorTable, TensorFile } from '../../runtime/safetensors.js';
import { rawSafetensors, tensorBytes, writeSafetensors } from './safetensors-writer.js';

let folder: string;
let path: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'safetensors-'));
  path = join(folder, 'model.safetensors');
});
afterAll(() => rm(folder, { recursive: true }));

const tensor = (dtype: string, shape: unknown, offsets: unknown) => ({ dtype, shape, data_offsets: offsets });
const eight = new Uint8Array(8);

describe('TensorFile', () => {
  test('reads F16 and F32 tensors and single rows as float32', async () => {
    const values = Float32Array.of(1, -2, 0.5, 65504, 0, -0.25);
    await writeSafetensors(path, [
      { name: 'half', dtype: 'F16', shape: [3, 2], values },
      { name: 'odd', dtype: 'F16', shape: [1], values: Float32Array.of(7) },
      { name: 'single', dtype: 'F32', shape: [3, 2], values },
    ]);
    const file = await TensorFile.open(path);
    expect(file.table.get('odd')).toMatchObject({ dtype: 'F16', shape: [1] });
    for (const name of ['half', 'single']) {
      expect([...(await file.read(name, [3, 2]))]).toEqual([...values]);
      expect([...file.rows(name, [3, 2])(1)]).toEqual([0.5, 65504]);
    }
    await expect(file.read('half', [2, 3])).rejects.toMatchObject({ code: 'CHECKPOINT_TENSORS' });
    await expect(file.read('none', [1])).rejects.toMatchObject({ code: 'CHECKPOINT_TENSORS' });
    expect(() => file.rows('half', [3, 3])).toThrow(expect.objectContaining({ code: 'CHECKPOINT_TENSORS' }));
    await file.close();
  });

  test('lists other element types but does not read them', async () => {
    await writeFile(path, rawSafetensors(JSON.stringify({ a: tensor('BF16', [2, 2], [0, 8]) }), eight));
    const file = await TensorFile.open(path);
    expect(file.table.get('a')).toMatchObject({ dtype: 'BF16' });
    await expect(file.read('a', [2, 2])).rejects.toMatchObject({ code: 'CHECKPOINT_TENSORS' });
    await file.close();
  });

  // S20: positions beyond 2 GiB, in a file with a hole.
  test('reads rows and tensors beyond 2 GiB', async () => {
    const rows = 1_200_000;
    const big = rows * 512 * 4;
    const header = JSON.stringify({
      big: tensor('F32', [rows, 512], [0, big]),
      last: tensor('F16', [2], [big, big + 4]),
    });
    const start = rawSafetensors(header);
    await writeFile(path, start);
    const handle = await open(path, 'r+');
    await handle.write(tensorBytes(Float32Array.of(3, 4), 'F32'), 0, 8, start.length + (rows - 1) * 2048);
    await handle.write(tensorBytes(Float32Array.of(5, 6), 'F16'), 0, 4, start.length + big);
    await handle.close();
    expect(big).toBeGreaterThan(2 ** 31);
    const file = await TensorFile.open(path);
    expect([
      ...file
        .rows('big', [rows, 512])(rows - 1)
        .subarray(0, 3),
    ]).toEqual([3, 4, 0]);
    expect([...(await file.read('last', [2]))]).toEqual([5, 6]);
    await file.close();
  });

  test('says that the file was cut while it was open', async () => {
    await writeSafetensors(path, [{ name: 'a', dtype: 'F32', shape: [2, 2], values: new Float32Array(4) }]);
    const file = await TensorFile.open(path);
    const { end } = file.table.get('a')!;
    const handle = await open(path, 'r+');
    await handle.truncate(end - 4);
    await handle.close();
    await expect(file.read('a', [2, 2])).rejects.toMatchObject({ code: 'CHECKPOINT_WEIGHTS' });
    expect(() => file.rows('a', [2, 2])(1)).toThrow(expect.objectContaining({ code: 'CHECKPOINT_WEIGHTS' }));
    await file.close();
  });
});

describe('a hostile file', () => {
  const good = JSON.stringify({ a: tensor('F32', [2], [0, 8]) });
  const declared = (length: bigint) => {
    const bytes = rawSafetensors(good, eight);
    bytes.writeBigUInt64LE(length);
    return bytes;
  };
  const json = (header: unknown, data = eight) => rawSafetensors(JSON.stringify(header), data);

  const cases: [string, Buffer][] = [
    ['that is empty', Buffer.alloc(0)],
    ['too small for a header length', Buffer.alloc(7)],
    ['with an empty header', rawSafetensors('')],
    ['with a header longer than the file', declared(1n << 20n)],
    ['with a header length of 2^63', declared(1n << 63n)],
    ['with a header length of 2^64 - 1', declared((1n << 64n) - 1n)],
    ['with a header over the limit', rawSafetensors(`{${' '.repeat(9 << 20)}}`)],
    ['cut in its header', rawSafetensors(good).subarray(0, 20)],
    ['cut in its data', rawSafetensors(good, new Uint8Array(7))],
    ['with bytes after its data', rawSafetensors(good, new Uint8Array(9))],
    ['that is a web page', Buffer.from('<!doctype html><html><body>sign in</body></html>'.padEnd(4096))],
    ['that is an LFS pointer', Buffer.from('version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 8\n')],
    ['with a header that is not UTF-8', rawSafetensors(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))],
    ['with a byte order mark', rawSafetensors(`\ufeff${good}`, eight)],
    ['with white space before the header', rawSafetensors(` ${good}`, eight)],
    ['with a header that is a list', json([])],
    ['with deep nesting', rawSafetensors(`{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`)],
    ['with a name twice', rawSafetensors(`{"a":${JSON.stringify(tensor('F32', [1], [0, 4]))},${good.slice(1)}`, eight)],
    ['with an entry that is a number', json({ a: 1 })],
    ['with an entry without shape', json({ a: { dtype: 'F32', data_offsets: [0, 8] } })],
    ['with an unknown key in an entry', json({ a: { ...tensor('F32', [2], [0, 8]), stride: [1] } })],
    ['with an unknown element type', json({ a: tensor('F4', [2], [0, 8]) })],
    ['with an element type named like a method', json({ a: tensor('toString', [2], [0, 8]) })],
    ['with a negative size', json({ a: tensor('F32', [-2], [0, 8]) })],
    ['with a fractional size', json({ a: tensor('F32', [2.5], [0, 8]) })],
    ['with a size in a text', json({ a: tensor('F32', ['2'], [0, 8]) })],
    ['with sizes whose product overflows', json({ a: tensor('F32', [2 ** 52, 2 ** 52, 2 ** 52], [0, 8]) })],
    ['with too many dimensions', json({ a: tensor('F32', [2, 1, 1, 1, 1, 1, 1, 1, 1], [0, 8]) })],
    ['with offsets backwards', json({ a: tensor('F32', [2], [8, 0]) })],
    ['with one offset', json({ a: tensor('F32', [2], [8]) })],
    ['with three offsets', json({ a: tensor('F32', [2], [0, 8, 8]) })],
    ['with offsets outside the file', json({ a: tensor('F32', [4], [0, 16]) })],
    [
      'with offsets beyond 2^53',
      rawSafetensors('{"a":{"dtype":"U8","shape":[1],"data_offsets":[9007199254740992,9007199254740993]}}'),
    ],
    ['with a shape that needs other bytes', json({ a: tensor('F32', [3], [0, 8]) })],
    ['with overlapping tensors', json({ a: tensor('F32', [2], [0, 8]), b: tensor('F32', [1], [4, 8]) })],
    ['with the same range twice', json({ a: tensor('F32', [2], [0, 8]), b: tensor('F32', [2], [0, 8]) })],
    ['with a gap between tensors', json({ a: tensor('U8', [2], [0, 2]), b: tensor('U8', [2], [6, 8]) })],
    ['with a gap before the first tensor', json({ a: tensor('U8', [6], [2, 8]) })],
    ['with metadata that is no object', json({ __metadata__: 'x', a: tensor('F32', [2], [0, 8]) })],
    ['with metadata of numbers', json({ __metadata__: { n: 1 }, a: tensor('F32', [2], [0, 8]) })],
  ];

  test.each(cases)('%s is refused', async (_name, bytes) => {
    await writeFile(path, bytes);
    const error = await readTensorTable(path).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'CheckpointError', code: 'CHECKPOINT_WEIGHTS' });
    expect(error).toMatchObject({ where: expect.stringContaining(path), expected: expect.anything() });
    expect((error as Error).message.length).toBeLessThan(500);
  });

  test('may have metadata, empty tensors, padding after the header and names of prototype members', async () => {
    const header = JSON.stringify({
      __metadata__: { format: 'pt' },
      empty: tensor('F32', [0, 5], [0, 0]),
      scalar: tensor('F32', [], [0, 4]),
      constructor: tensor('U8', [4], [4, 8]),
    });
    await writeFile(path, rawSafetensors(`${header}   `, eight));
    expect([...(await readTensorTable(path)).keys()]).toEqual(['empty', 'scalar', 'constructor']);
  });

  test('a path that is no file is CHECKPOINT_MISSING', async () => {
    for (const one of [join(folder, 'none'), folder]) {
      await expect(readTensorTable(one)).rejects.toMatchObject({ code: 'CHECKPOINT_MISSING', where: one });
    }
  });
});
