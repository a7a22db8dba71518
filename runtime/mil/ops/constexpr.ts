import { MilError } from '../../errors.js';
import { roundToHalf } from '../../float16.js';
import type { MilDtype } from '../ast.js';
import { type Constant, constantElements, derivedConstant, type Elements } from '../constants.js';
import type { Step } from '../program.js';
import { StepReader } from '../reader.js';
import { elementCount, shapeText } from '../types.js';

/** Makes the constant that a `constexpr_*` operation describes; elements are computed when they are asked for. */
type Fold = (reader: StepReader) => Constant;

const FLOATS: readonly MilDtype[] = ['fp16', 'fp32'];

function constant(reader: StepReader, name: string): Constant {
  const value = reader.value(name);
  return value.constant ?? reader.unsupported(`a constant for "${name}"`, `"${value.name}", which is computed`);
}

function optionalConstant(reader: StepReader, name: string): Constant | undefined {
  return reader.step.operands.has(name) ? constant(reader, name) : undefined;
}

/** The result under a key that names the operation and all it depends on. */
function result(
  reader: StepReader,
  dtype: MilDtype,
  shape: readonly number[],
  sources: readonly (Constant | undefined)[],
  compute: () => Elements,
): Constant {
  const output = reader.output();
  if (shapeText(output.shape) !== shapeText(shape)) reader.misshapen(shapeText(shape), shapeText(output.shape));
  if (output.dtype !== dtype) reader.misshapen(`an output of type ${dtype}`, output.dtype);
  const key = `${reader.step.op}(${sources.map((source) => source?.key).join(';')})->${dtype}${shapeText(shape)}`;
  return derivedConstant(dtype, shape, key, compute);
}

/** Maps positions of a tensor to positions of a smaller one that holds one element per block. */
function blockIndex(reader: StepReader, shape: readonly number[], blocks: readonly number[]): (at: number) => number {
  const whole =
    blocks.length === shape.length && blocks.every((count, i) => count > 0 && (shape[i] as number) % count === 0);
  if (!whole) reader.misshapen(`blocks that divide ${shapeText(shape)}`, shapeText(blocks));
  const sizes = shape.map((dim, axis) => dim / (blocks[axis] as number));
  return (at) => {
    let [rest, index, stride] = [at, 0, 1];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const dim = shape[axis] as number;
      index += Math.floor((rest % dim) / (sizes[axis] as number)) * stride;
      stride *= blocks[axis] as number;
      rest = Math.floor(rest / dim);
    }
    return index;
  };
}

function rounded(dtype: MilDtype, values: Float32Array): Float32Array {
  return dtype === 'fp16' ? roundToHalf(values) : values;
}

function affine(
  data: Elements,
  scale: Elements,
  offset: Elements | undefined,
  place: (at: number) => number,
): Float32Array {
  const out = new Float32Array(data.length);
  for (let i = 0; i < out.length; i++) {
    const at = place(i);
    out[i] = ((data[i] as number) - (offset?.[at] ?? 0)) * (scale[at] as number);
  }
  return out;
}

/** One element per channel, from one per channel or one for all. */
function perChannel(part: Constant, count: number): Elements {
  const elements = constantElements(part);
  return elements.length === count ? elements : Float32Array.from({ length: count }, () => elements[0] as number);
}

/** `(quantized_data - zero_point) * scale`, both per tensor or along `axis`. */
function foldAffine(reader: StepReader): Constant {
  const [data, scale] = [constant(reader, 'quantized_data'), constant(reader, 'scale')];
  const zero = optionalConstant(reader, 'zero_point');
  const axis = reader.axis(reader.number('axis', 0), data.shape.length);
  const channels = data.shape[axis] as number;
  const counts = (zero ? [scale, zero] : [scale]).map((part) => elementCount(part.shape));
  if (counts.some((count) => count !== 1 && count !== channels))
    reader.misshapen(`1 or ${channels} scales`, String(counts));
  const count = Math.max(...counts);
  const place = blockIndex(
    reader,
    data.shape,
    data.shape.map((_, i) => (i === axis ? count : 1)),
  );
  return result(reader, scale.dtype, data.shape, [data, scale, zero], () => {
    const offsets = zero && perChannel(zero, count);
    return rounded(scale.dtype, affine(constantElements(data), perChannel(scale, count), offsets, place));
  });
}

/** `(data - offset) * scale`, with one scale and offset per block. */
function foldBlockwise(reader: StepReader): Constant {
  const [data, scale] = [constant(reader, 'data'), constant(reader, 'scale')];
  const offset = optionalConstant(reader, 'offset');
  if (offset && shapeText(offset.shape) !== shapeText(scale.shape)) {
    reader.misshapen(shapeText(scale.shape), shapeText(offset.shape));
  }
  const place = blockIndex(reader, data.shape, scale.shape);
  return result(reader, scale.dtype, data.shape, [data, scale, offset], () => {
    const offsets = offset && constantElements(offset);
    return rounded(scale.dtype, affine(constantElements(data), constantElements(scale), offsets, place));
  });
}

function lookUp(
  reader: StepReader,
  indices: Elements,
  table: Elements,
  palettes: number,
  block: (at: number) => number,
) {
  const out = new Float32Array(indices.length);
  for (let i = 0; i < out.length; i++) {
    const index = indices[i] as number;
    if (index >= palettes) {
      const where = reader.step.where();
      const expected = `an index below ${palettes}`;
      throw new MilError('MIL_BLOB', `${where}: expected ${expected}, found ${index}`, {
        expected,
        found: index,
        where,
      });
    }
    out[i] = table[block(i) * palettes + index] as number;
  }
  return out;
}

/** Bytes that hold indices of `bits` bits each, lowest bits first. */
function unpack(bytes: Elements, bits: number, count: number): Uint8Array {
  return Uint8Array.from({ length: count }, (_, i) => {
    const at = i * bits;
    const pair = (bytes[at >> 3] as number) | ((bytes[(at >> 3) + 1] ?? 0) << 8);
    return (pair >> (at & 7)) & ((1 << bits) - 1);
  });
}

/** The older form: `indices` are packed bytes, `lut` one table of 2, 4, 16, 64 or 256 entries, `shape` the result's. */
function foldPackedTable(reader: StepReader, indices: Constant, lut: Constant): Constant {
  const palettes = lut.shape[0] as number;
  const bits = Math.log2(palettes);
  const shape = reader.numbers('shape');
  const count = elementCount(shape);
  if (![1, 2, 4, 6, 8].includes(bits) || lut.shape.length !== 1)
    reader.unsupported('a table of 2^n entries', shapeText(lut.shape));
  if (indices.dtype !== 'uint8' || elementCount(indices.shape) !== Math.ceil((count * bits) / 8)) {
    reader.misshapen(
      `${Math.ceil((count * bits) / 8)} bytes of indices`,
      `${shapeText(indices.shape)} ${indices.dtype}`,
    );
  }
  return result(reader, lut.dtype, shape, [indices, lut], () =>
    lookUp(reader, unpack(constantElements(indices), bits, count), constantElements(lut), palettes, () => 0),
  );
}

/** `lut` has one table per block of `indices`: its last dimensions are the entries and the vector size. */
function foldTable(reader: StepReader): Constant {
  const [indices, lut] = [constant(reader, 'indices'), constant(reader, 'lut')];
  if (!FLOATS.includes(lut.dtype)) reader.unsupported('a table of floats', lut.dtype);
  if (reader.step.operands.has('shape')) return foldPackedTable(reader, indices, lut);
  const [palettes, vector] = [lut.shape.at(-2) ?? 0, lut.shape.at(-1) ?? 0];
  if (vector !== 1) reader.unsupported('a table of scalars', `vectors of ${vector}`);
  if (!/^uint/.test(indices.dtype)) reader.misshapen('unsigned indices', indices.dtype);
  const block = blockIndex(reader, indices.shape, lut.shape.slice(0, -2));
  return result(reader, lut.dtype, indices.shape, [indices, lut], () =>
    lookUp(reader, constantElements(indices), constantElements(lut), palettes, block),
  );
}

function foldCast(reader: StepReader): Constant {
  const source = constant(reader, 'source_val');
  const dtype = reader.text('output_dtype', '');
  if (dtype !== 'fp32' || source.dtype !== 'fp16')
    reader.unsupported('a cast of fp16 to fp32', `${source.dtype} to ${dtype}`);
  return result(reader, 'fp32', source.shape, [source], () => constantElements(source));
}

const FOLDS: Readonly<Record<string, Fold>> = {
  constexpr_affine_dequantize: foldAffine,
  constexpr_blockwise_shift_scale: foldBlockwise,
  constexpr_cast: foldCast,
  constexpr_lut_to_dense: foldTable,
};

/** Operations that stand for constants. */
export const CONSTEXPR: readonly string[] = Object.keys(FOLDS);

/** The constant of a `constexpr_*` operation; undefined for any other. */
export function foldConstexpr(step: Step): Constant | undefined {
  return Object.hasOwn(FOLDS, step.op) ? FOLDS[step.op]?.(new StepReader(step)) : undefined;
}
