import { MilError } from '../errors.js';
import { roundToHalf, widenHalf } from '../float16.js';
import type { MilDtype, MilValue, TensorType } from './ast.js';
import { BLOB_BITS, type Blob, type BlobFiles } from './blobs.js';
import type { OnnxDtype } from './onnx-proto.js';
import { elementCount, staticShape, typeText } from './types.js';

export type Elements = Float32Array | Int32Array | Int16Array | Uint16Array | Int8Array | Uint8Array;

/**
 * A tensor that is known before the graph runs. `key` is equal only for equal contents; `blocks` yields the elements
 * in order, in the type the graph computes with, and never holds more than one block of a weight file in memory.
 */
export interface Constant {
  readonly dtype: MilDtype;
  readonly shape: readonly number[];
  readonly key: string;
  blocks(): Iterable<Elements>;
}

/** Elements per block of a weight file; a multiple of 8, so that packed types start on whole bytes. */
const BLOCK = 1 << 20;

/** How each type is computed with: halves are widened to float32, once, here. */
const COMPUTE_DTYPE: Partial<Record<MilDtype, OnnxDtype>> = {
  fp16: 'float32',
  fp32: 'float32',
  bool: 'bool',
  int8: 'int8',
  uint8: 'uint8',
  int16: 'int16',
  uint16: 'uint16',
  int32: 'int32',
};

const ARRAYS = {
  float32: Float32Array,
  bool: Uint8Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
} as const;

/** The ONNX type that stands for a MIL type in the translated graph; undefined when none does. */
export function computeDtype(dtype: MilDtype): OnnxDtype | undefined {
  return COMPUTE_DTYPE[dtype];
}

/** Bytes per element in the translated graph. */
export function elementBytes(dtype: MilDtype): number {
  return arrayFor(dtype).BYTES_PER_ELEMENT;
}

function arrayFor(dtype: MilDtype): (typeof ARRAYS)[keyof typeof ARRAYS] {
  const compute = COMPUTE_DTYPE[dtype];
  if (compute === undefined) return Int32Array;
  return ARRAYS[compute as keyof typeof ARRAYS];
}

/** A constant computed from others when its elements are asked for. */
export function derivedConstant(
  dtype: MilDtype,
  shape: readonly number[],
  key: string,
  compute: () => Elements,
): Constant {
  return { dtype, shape, key, blocks: () => [compute()] };
}

/** One block of unpacked elements of a sub-byte type, which lies in the file lowest bits first. */
function unpackBits(bytes: Uint8Array, bits: number, signed: boolean, into: Elements): void {
  const sign = signed ? 1 << (bits - 1) : 0;
  for (let i = 0; i < into.length; i++) {
    const at = i * bits;
    const pair = (bytes[at >> 3] as number) | ((bytes[(at >> 3) + 1] ?? 0) << 8);
    const raw = (pair >> (at & 7)) & ((1 << bits) - 1);
    into[i] = (raw ^ sign) - sign;
  }
}

function decodeBlock(dtype: MilDtype, bytes: Uint8Array<ArrayBuffer>, count: number): Elements {
  const bits = BLOB_BITS[dtype] as number;
  if (dtype === 'fp16') return widenHalf(new Uint16Array(bytes.buffer, 0, count));
  if (bits < 8) {
    const whole = dtype === 'int4' ? new Int8Array(count) : new Uint8Array(count);
    unpackBits(bytes, bits, dtype === 'int4', whole);
    return whole;
  }
  return new (arrayFor(dtype))(bytes.buffer, 0, count);
}

function* blobBlocks(blob: Blob, elements: number): Iterable<Elements> {
  const bits = BLOB_BITS[blob.type.dtype] as number;
  for (let start = 0; start < elements; start += BLOCK) {
    const count = Math.min(BLOCK, elements - start);
    const bytes = new Uint8Array(Math.ceil((count * bits) / 8));
    blob.read((start * bits) / 8, bytes);
    yield decodeBlock(blob.type.dtype, bytes, count);
  }
}

function literalElements(type: TensorType, data: readonly number[]): Elements {
  if (type.dtype === 'fp16') return roundToHalf(Float32Array.from(data));
  return arrayFor(type.dtype).from(data);
}

/**
 * The constant a literal or blob reference stands for.
 *
 * @throws MilError `MIL_BLOB` (see `BlobFiles.open`); `MIL_UNSUPPORTED` for strings, containers and open shapes.
 */
export function constantOf(value: MilValue, files: BlobFiles, at: () => string): Constant {
  const type = value.type;
  const shape = type.kind === 'tensor' ? staticShape(type) : undefined;
  if (type.kind === 'opaque' || !shape || value.kind === 'strings' || value.kind === 'opaque') {
    const where = at();
    throw new MilError('MIL_UNSUPPORTED', `${where}: a constant of type ${typeText(type)} can't be computed with`, {
      expected: 'a numeric tensor of known shape',
      found: typeText(type),
      where,
    });
  }
  if (value.kind === 'numbers') {
    const elements = literalElements(type, value.data);
    const key = `${type.dtype}:${shape.join('x')}:${Array.from(elements, (x) => (Object.is(x, -0) ? '-0' : x)).join()}`;
    return { dtype: type.dtype, shape, key, blocks: () => [elements] };
  }
  const blob = files.open(value.blob, type);
  return { dtype: type.dtype, shape, key: blob.key, blocks: () => blobBlocks(blob, elementCount(shape)) };
}

/** All elements at once. */
export function constantElements(constant: Constant): Elements {
  const blocks = [...constant.blocks()];
  if (blocks.length === 1) return blocks[0] as Elements;
  const all = new (arrayFor(constant.dtype))(elementCount(constant.shape));
  let at = 0;
  for (const block of blocks) {
    all.set(block, at);
    at += block.length;
  }
  return all;
}
