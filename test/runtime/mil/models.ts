import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openMlmodelc, type PortableModel } from '../../../runtime/mil/session.js';

/** The second dialect's frame around one function. */
export function program(inputs: string, statements: string | readonly string[], outputs: string): string {
  const body = typeof statements === 'string' ? statements : statements.join('\n');
  return `program(1.3)\n{\n    func main<ios18>(${inputs}) {\n${body}\n    } -> (${outputs});\n}`;
}

/** Element types as weight files number them, and the bits of one element. */
const BLOB_TYPES = {
  fp16: 1,
  fp32: 2,
  uint8: 3,
  int8: 4,
  int16: 6,
  uint16: 7,
  int4: 8,
  uint1: 9,
  uint2: 10,
  uint4: 11,
  uint3: 12,
  uint6: 13,
  int32: 14,
} as const;

export interface BlobInput {
  readonly dtype: keyof typeof BLOB_TYPES | number;
  readonly bytes: Uint8Array;
  readonly sentinel?: number;
  readonly size?: bigint;
  readonly start?: bigint;
}

/** One weight file: a header, then for each tensor a 64-byte record and its bytes, everything on 64-byte boundaries. */
export function weightFile(blobs: readonly BlobInput[]): { file: Buffer; offsets: number[] } {
  const parts: Buffer[] = [Buffer.alloc(64)];
  const offsets: number[] = [];
  let at = 64;
  for (const { dtype, bytes, sentinel = 0xdeadbeef, size, start } of blobs) {
    offsets.push(at);
    const record = Buffer.alloc(64);
    record.writeUInt32LE(sentinel, 0);
    record.writeUInt32LE(typeof dtype === 'number' ? dtype : BLOB_TYPES[dtype], 4);
    record.writeBigUInt64LE(size ?? BigInt(bytes.byteLength), 8);
    record.writeBigUInt64LE(start ?? BigInt(at + 64), 16);
    const padded = Buffer.alloc(Math.ceil(bytes.byteLength / 64) * 64);
    padded.set(bytes);
    parts.push(record, padded);
    at += 64 + padded.length;
  }
  return { file: Buffer.concat(parts), offsets };
}

/** The bytes of numbers in one of the plain types. */
export function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** Writes a `.mlmodelc` folder. */
export async function writeModel(dir: string, text: string, weights?: Uint8Array): Promise<string> {
  await mkdir(join(dir, 'weights'), { recursive: true });
  await writeFile(join(dir, 'model.mil'), text);
  if (weights) await writeFile(join(dir, 'weights', 'weight.bin'), weights);
  return dir;
}

/** A reference to the tensor at an offset of the weight file. */
export function blob(type: string, offset: number | bigint, path = '@model_path/weights/weight.bin'): string {
  return `${type}(BLOBFILE(path = string("${path}"), offset = uint64(${offset})))`;
}

/** Opens, hands over and releases. */
export async function withModel<T>(
  dir: string,
  use: (model: PortableModel) => Promise<T>,
  options: Parameters<typeof openMlmodelc>[1] = {},
): Promise<T> {
  const model = await openMlmodelc(dir, { threads: 1, ...options });
  try {
    return await use(model);
  } finally {
    await model.release();
  }
}

/** Numbers that look random and are the same in every run, between -1 and 1. */
export function noise(count: number, seed = 1): Float32Array {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 1073741824 - 1;
  });
}

/** The largest difference of two arrays of equal length. */
export function maxDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) return Number.POSITIVE_INFINITY;
  return Array.from(a).reduce((most, value, i) => Math.max(most, Math.abs(value - (b[i] as number))), 0);
}
