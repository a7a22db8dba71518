import { describe, expect, test } from '@jest/globals';
import { codeOf, workspace } from '../../workspace.js';
import { type BlobInput, blob, bytesOf, program, weightFile, withModel, writeModel } from './models.js';

const folder = workspace();

/** Adds the constant to zeros and returns it. */
async function evaluate(type: string, statement: (offsets: number[]) => string, blobs: BlobInput[]): Promise<number[]> {
  const { file, offsets } = weightFile(blobs);
  const plain = type.replace('fp16', 'fp32');
  const cast = type.includes('fp16') ? [`${plain} wide = cast(dtype = string("fp32"), x = w);`] : [];
  const sum = `${plain} y = add(x = x, y = ${cast.length > 0 ? 'wide' : 'w'});`;
  const dir = await writeModel(folder(), program(`${plain} x`, [statement(offsets), ...cast, sum], 'y'), file);
  return withModel(dir, async (model) => {
    const count = model.inputs[0]!.shape.reduce((a, b) => a * b, 1);
    return Array.from((await model.run({ x: new Float32Array(count) })).y as Float32Array);
  });
}

const bytes = (dtype: BlobInput['dtype'], ...values: number[]): BlobInput => ({
  dtype,
  bytes: Uint8Array.from(values),
});
const floats = (...values: number[]): BlobInput => ({ dtype: 'fp32', bytes: bytesOf(Float32Array.from(values)) });

describe('constexpr_lut_to_dense', () => {
  test('looks whole bytes up in one table per tensor', async () => {
    const found = await evaluate(
      'tensor<fp32, [2, 3]>',
      ([indices, lut]) =>
        `tensor<fp32, [2, 3]> w = constexpr_lut_to_dense(indices = ${blob('tensor<uint8, [2, 3]>', indices!)}, lut = ${blob('tensor<fp32, [1, 1, 4, 1]>', lut!)});`,
      [bytes('uint8', 0, 1, 2, 3, 2, 1), floats(10, 11, 12, 13)],
    );
    expect(found).toEqual([10, 11, 12, 13, 12, 11]);
  });

  test('looks packed indices up in one table per group of channels', async () => {
    const found = await evaluate(
      'tensor<fp32, [4, 2]>',
      ([indices, lut]) =>
        `tensor<fp32, [4, 2]> w = constexpr_lut_to_dense(indices = ${blob('tensor<uint1, [4, 2]>', indices!)}, lut = ${blob('tensor<fp32, [2, 1, 2, 1]>', lut!)});`,
      [bytes('uint1', 0b10011010), floats(1, 2, 3, 4)],
    );
    expect(found).toEqual([1, 2, 1, 2, 4, 3, 3, 4]);
  });

  test('reads the older form: attributes, packed bytes and a shape', async () => {
    const found = await evaluate(
      'tensor<fp16, [3, 1]>',
      ([indices, lut]) =>
        `tensor<fp16, [3, 1]> w = constexpr_lut_to_dense()[indices = ${blob('tensor<uint8, [2]>', indices!)}, lut = ${blob('tensor<fp16, [16]>', lut!)}, shape = tensor<uint32, [2]>([3, 1])];`,
      [
        bytes('uint8', 0x21, 0x0f),
        { dtype: 'fp16', bytes: bytesOf(Uint16Array.from({ length: 16 }, (_, i) => 0x3c00 + i)) },
      ],
    );
    expect(found).toEqual([1 + 1 / 1024, 1 + 2 / 1024, 1 + 15 / 1024]);
  });

  test('refuses an index outside the table and vectors instead of scalars', async () => {
    const lut = (type: string, data: BlobInput) =>
      evaluate(
        'tensor<fp32, [2]>',
        ([indices, table]) =>
          `tensor<fp32, [2]> w = constexpr_lut_to_dense(indices = ${blob('tensor<uint8, [2]>', indices!)}, lut = ${blob(type, table!)});`,
        [bytes('uint8', 1, 2), data],
      );
    expect(await codeOf(() => lut('tensor<fp32, [1, 2, 1]>', floats(1, 2)))).toBe('MIL_BLOB');
    expect(await codeOf(() => lut('tensor<fp32, [1, 2, 2]>', floats(1, 2, 3, 4)))).toBe('MIL_UNSUPPORTED');
    expect(await codeOf(() => lut('tensor<fp32, [3, 1, 1]>', floats(1, 2, 3)))).toBe('MIL_SHAPE');
  });
});

describe('constexpr_affine_dequantize', () => {
  test('takes one scale and zero point for all, or one per channel', async () => {
    const data = bytes('int8', 1, 2, 3, 255);
    const one = await evaluate(
      'tensor<fp32, [2, 2]>',
      ([offset]) =>
        `tensor<fp32, [2, 2]> w = constexpr_affine_dequantize()[axis = int32(0), quantized_data = ${blob('tensor<int8, [2, 2]>', offset!)}, scale = fp32(0x1p-1), zero_point = int8(-1)];`,
      [data],
    );
    expect(one).toEqual([1, 1.5, 2, 0]);
    const each = await evaluate(
      'tensor<fp32, [2, 2]>',
      ([offset]) =>
        `tensor<fp32, [2, 2]> w = constexpr_affine_dequantize()[axis = int32(1), quantized_data = ${blob('tensor<int8, [2, 2]>', offset!)}, scale = tensor<fp32, [2]>([1.0, 10.0]), zero_point = int8(1)];`,
      [data],
    );
    expect(each).toEqual([0, 10, 2, -20]);
  });
});

describe('constexpr_blockwise_shift_scale', () => {
  test('takes one scale and offset per block, after a table or alone', async () => {
    const found = await evaluate(
      'tensor<fp32, [2, 4]>',
      ([data]) =>
        `tensor<fp32, [2, 4]> w = constexpr_blockwise_shift_scale(data = ${blob('tensor<int4, [2, 4]>', data!)}, offset = tensor<int4, [2, 2]>([[0, 1], [0, 0]]), scale = tensor<fp32, [2, 2]>([[1.0, 2.0], [3.0, 4.0]]));`,
      [bytes('int4', 0x21, 0x43, 0x1f, 0x88)],
    );
    expect(found).toEqual([1, 2, 4, 6, -3, 3, -32, -32]);
  });
});

describe('constexpr_cast', () => {
  test('widens halves, also when the result is used by another constant expression', async () => {
    const found = await evaluate(
      'tensor<fp32, [2]>',
      ([
        half,
        indices,
      ]) => `tensor<fp32, [1, 2, 1]> wide = constexpr_cast()[output_dtype = string("fp32"), source_val = ${blob('tensor<fp16, [1, 2, 1]>', half!)}];
        tensor<fp32, [2]> w = constexpr_lut_to_dense(indices = ${blob('tensor<uint8, [2]>', indices!)}, lut = wide);`,
      [{ dtype: 'fp16', bytes: bytesOf(Uint16Array.of(0x3c00, 0xc000)) }, bytes('uint8', 1, 0)],
    );
    expect(found).toEqual([-2, 1]);
  });
});
