import { closeSync, ftruncateSync, mkdirSync, openSync, symlinkSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { TensorType } from '../../../runtime/mil/ast.js';
import { type Blob, BlobFiles } from '../../../runtime/mil/blobs.js';
import { constantElements, constantOf } from '../../../runtime/mil/constants.js';
import { codeOf, workspace } from '../../workspace.js';
import { type BlobInput, bytesOf, weightFile, writeModel } from './models.js';

const folder = workspace();
const PATH = '@model_path/weights/weight.bin';

function tensor(dtype: TensorType['dtype'], ...shape: number[]): TensorType {
  return { kind: 'tensor', dtype, shape };
}

async function withFile<T>(blobs: readonly BlobInput[], use: (files: BlobFiles, offsets: number[]) => T): Promise<T> {
  const { file, offsets } = weightFile(blobs);
  const files = new BlobFiles(await writeModel(folder(), '', file));
  try {
    return use(files, offsets);
  } finally {
    files.close();
  }
}

function elements(files: BlobFiles, type: TensorType, offset: number): number[] {
  const constant = constantOf({ kind: 'blob', type, blob: { path: PATH, offset } }, files, () => 'here');
  return Array.from(constantElements(constant));
}

const three = { dtype: 'fp32', bytes: bytesOf(Float32Array.of(1, 2, 3)) } as const;

describe('BlobFiles', () => {
  test('reads every plain type, halves widened', async () => {
    const half = { dtype: 'fp16', bytes: bytesOf(Uint16Array.of(0x3c00, 0x00a8, 0xc000, 0x7c00)) } as const;
    const int8 = { dtype: 'int8', bytes: bytesOf(Int8Array.of(-128, 127)) } as const;
    const uint16 = { dtype: 'uint16', bytes: bytesOf(Uint16Array.of(65535)) } as const;
    const int32 = { dtype: 'int32', bytes: bytesOf(Int32Array.of(-5, 2 ** 31 - 1)) } as const;
    await withFile([half, int8, uint16, int32, three], (files, [a, b, c, d, e]) => {
      expect(elements(files, tensor('fp16', 4), a!)).toEqual([1, 1.0013580322265625e-5, -2, Number.POSITIVE_INFINITY]);
      expect(elements(files, tensor('int8', 2), b!)).toEqual([-128, 127]);
      expect(elements(files, tensor('uint16', 1), c!)).toEqual([65535]);
      expect(elements(files, tensor('int32', 2), d!)).toEqual([-5, 2 ** 31 - 1]);
      expect(elements(files, tensor('fp32', 3, 1), e!)).toEqual([1, 2, 3]);
    });
  });

  test('reads packed types, lowest bits first', async () => {
    const packed = (dtype: 'uint1' | 'uint2' | 'uint3' | 'uint4' | 'uint6' | 'int4', ...bytes: number[]) => ({
      dtype,
      bytes: Uint8Array.from(bytes),
    });
    const blobs = [
      packed('uint1', 0b00000101),
      packed('uint2', 0b11100100),
      packed('uint3', 0b10_001_000, 0b1_100_011_0, 0b111_110_10),
      packed('uint4', 0x21, 0x03),
      packed('uint6', 0b01_000001, 0b0011_0000, 0b000100_00),
      packed('int4', 0x8f, 0x07),
    ];
    await withFile(blobs, (files, [a, b, c, d, e, f]) => {
      expect(elements(files, tensor('uint1', 3), a!)).toEqual([1, 0, 1]);
      expect(elements(files, tensor('uint2', 4), b!)).toEqual([0, 1, 2, 3]);
      expect(elements(files, tensor('uint3', 8), c!)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      expect(elements(files, tensor('uint4', 3), d!)).toEqual([1, 2, 3]);
      expect(elements(files, tensor('uint6', 4), e!)).toEqual([1, 1, 3, 4]);
      expect(elements(files, tensor('int4', 3), f!)).toEqual([-1, -8, 7]);
    });
  });

  test('reads tensors of more than one block whole', async () => {
    const many = Int32Array.from({ length: 2 ** 21 + 5 }, (_, i) => i);
    await withFile([{ dtype: 'int32', bytes: bytesOf(many) }], (files, [at]) => {
      const read = Int32Array.from(elements(files, tensor('int32', many.length), at!));
      expect(Buffer.from(read.buffer).equals(Buffer.from(many.buffer))).toBe(true);
    });
  });

  test.each<[string, BlobInput, TensorType]>([
    ['another sentinel', { ...three, sentinel: 0xdeadbee0 }, tensor('fp32', 3)],
    ['another element type', three, tensor('int32', 3)],
    ['an unknown element type', { ...three, dtype: 99 }, tensor('fp32', 3)],
    ['more elements than declared', three, tensor('fp32', 2)],
    ['fewer elements than declared', three, tensor('fp32', 4)],
    ['a record of another size', { ...three, size: 8n }, tensor('fp32', 3)],
    ['data that starts behind the end', { ...three, start: 1n << 40n }, tensor('fp32', 3)],
    ['data that ends behind the end', { ...three, start: 184n }, tensor('fp32', 3)],
    ['an offset beyond all numbers', { ...three, start: 2n ** 64n - 1n }, tensor('fp32', 3)],
    ['a type no file holds', three, tensor('bool', 3)],
    ['a size beyond all numbers', three, tensor('fp32', 1e15, 1e15, 1e15)],
  ])('refuses %s', async (_, input, type) => {
    await withFile([input], async (files, [offset]) => {
      expect(await codeOf(() => files.open({ path: PATH, offset: offset! }, type))).toBe('MIL_BLOB');
    });
  });

  test.each([64 + 1, 10_000, 2 ** 53, 1.8446744073709552e19])('refuses a record at %d', async (offset) => {
    const type = tensor('fp32', 3);
    await withFile([three], async (files) => {
      expect(await codeOf(() => files.open({ path: PATH, offset }, type))).toBe('MIL_BLOB');
    });
  });

  test.each([
    'weights/weight.bin',
    '/etc/passwd',
    '@model_path/../weight.bin',
    '@model_path/weights/../../weight.bin',
    '@model_path/weights/./weight.bin',
    '@model_path//weight.bin',
    '@model_path/weights\\weight.bin',
    '@model_path/weights/weight.bin\0',
    '@model_path/C:/weight.bin',
    '@model_path/',
    '@model_path/weights',
    '@model_path/absent.bin',
  ])('refuses the path %j', async (path) => {
    await withFile([three], async (files) => {
      writeFileSync(join(folder(), 'weight.bin'), '');
      expect(await codeOf(() => files.open({ path, offset: 64 }, tensor('fp32', 3)))).toBe('MIL_BLOB');
    });
  });

  test('refuses a link that leaves the model folder, and follows one inside', async () => {
    const outside = join(folder(), 'weight.bin');
    const { file } = weightFile([three]);
    writeFileSync(outside, file);
    const dir = await writeModel(folder(), '', file);
    symlinkSync(outside, join(dir, 'weights', 'leaves.bin'));
    symlinkSync('weight.bin', join(dir, 'weights', 'stays.bin'));
    const files = new BlobFiles(dir);
    const type = tensor('fp32', 3);
    const at = (path: string) => () => files.open({ path: `@model_path/weights/${path}`, offset: 64 }, type);
    expect(await codeOf(at('leaves.bin'))).toBe('MIL_BLOB');
    expect(at('stays.bin')().byteLength).toBe(12);
    files.close();
  });

  test('S20: reads a record behind 2 GiB of a sparse file', async () => {
    const dir = folder();
    mkdirSync(join(dir, 'weights'));
    const offset = 2 ** 31 + 64;
    const { file } = weightFile([{ ...three, start: BigInt(offset) + 64n }]);
    const fd = openSync(join(dir, 'weights', 'weight.bin'), 'w');
    writeSync(fd, file, 64, file.length - 64, offset);
    ftruncateSync(fd, 2 ** 31 + 2 ** 28);
    closeSync(fd);
    const files = new BlobFiles(dir);
    const blob: Blob = files.open({ path: PATH, offset }, tensor('fp32', 3));
    const into = new Float32Array(2);
    blob.read(4, bytesOf(into));
    expect(Array.from(into)).toEqual([2, 3]);
    files.close();
  });
});
