import { widenHalf } from '../float16.js';
import { brokenProtocol, ProbeError } from './errors.js';
import { HEADER_BYTES, KIND, writeHeader } from './frames.js';
import { narrowInto } from './halves.js';

/** Name and shape of an FP16 array. */
export interface ProbeTensor {
  readonly name: string;
  readonly shape: readonly number[];
}

/** Where tensors lie in a payload (docs/probe-protocol.md §4.3). */
export interface TensorLayout {
  readonly tensors: readonly (ProbeTensor & { readonly offset: number; readonly count: number })[];
  /** Bytes of the payload. */
  readonly length: number;
}

const ALIGNMENT = 64;

/** Lays tensors out; undefined when the payload would be longer than `limit` bytes. */
export function layoutOf(specs: readonly ProbeTensor[], limit: number): TensorLayout | undefined {
  let length = ALIGNMENT;
  const tensors = specs.map(({ name, shape }) => {
    const count = shape.reduce((product, dimension) => product * dimension, 1);
    const tensor = { name, shape, offset: length, count };
    length += Math.ceil((count * 2) / ALIGNMENT) * ALIGNMENT;
    return tensor;
  });
  return length <= limit ? { tensors, length } : undefined;
}

/** A request's frame whose padding is zero; it can be filled again after it was sent. */
export function requestFrame(model: number, layout: TensorLayout): Buffer {
  const frame = Buffer.from(new ArrayBuffer(HEADER_BYTES + layout.length));
  frame.writeUInt16LE(model, HEADER_BYTES);
  frame.writeUInt16LE(layout.tensors.length, HEADER_BYTES + 2);
  return frame;
}

/** Elements of an input: numbers, which are rounded, or the bits of FP16 numbers, which are taken as they are. */
export type ProbeInput = Float32Array | Uint16Array;

/** Fills a request's frame. Throws ProbeError PROBE_INPUT: missing, unknown or of another length than the model's. */
export function fillRequest(frame: Buffer, layout: TensorLayout, inputs: Record<string, ProbeInput>): void {
  const names = layout.tensors.map(({ name }) => name);
  for (const name of Object.keys(inputs)) {
    if (!names.includes(name)) refuse(name, `one of ${names.join(', ')}`, 'another input');
  }
  for (const { name, shape, offset, count } of layout.tensors) {
    const values: unknown = Object.hasOwn(inputs, name) ? inputs[name] : undefined;
    if (!isFloats(values) && !isHalves(values)) refuse(name, 'a Float32Array or Uint16Array', typeof values);
    if (values.length !== count) refuse(name, `${count} elements, shape [${shape.join(', ')}]`, `${values.length}`);
    const target = halves(frame, HEADER_BYTES + offset, count);
    if (isHalves(values)) target.set(values);
    else narrowInto(values, target);
  }
}

/** Gives a filled frame its request id. */
export function addressRequest(frame: Buffer, id: number): void {
  writeHeader(frame, KIND.predict, id, frame.length - HEADER_BYTES);
}

/** Outputs and times of a RESULT. */
export interface ProbeResult {
  readonly outputs: Record<string, Float32Array>;
  /** Microseconds that Core ML took. */
  readonly predicted: number;
  /** Microseconds that the request waited in the probe. */
  readonly waited: number;
}

/** Reads a RESULT's payload. Throws ProbeError PROBE_PROTOCOL. */
export function readResult(payload: Buffer, model: number, layout: TensorLayout): ProbeResult {
  if (payload.length !== layout.length) throw brokenProtocol('a result', `${layout.length} bytes`, payload.length);
  const found = [payload.readUInt16LE(0), payload.readUInt16LE(2)];
  const expected = [model, layout.tensors.length];
  if (found.join() !== expected.join()) throw brokenProtocol('a result', `model and tensors ${expected}`, found);
  if (payload.subarray(12, ALIGNMENT).some((byte) => byte !== 0)) throw brokenProtocol('a result', 'zeros', 'others');
  const outputs: Record<string, Float32Array> = Object.create(null);
  for (const { name, offset, count } of layout.tensors) outputs[name] = widenHalf(halves(payload, offset, count));
  return { outputs, predicted: payload.readUInt32LE(4), waited: payload.readUInt32LE(8) };
}

function halves(buffer: Buffer, offset: number, count: number): Uint16Array {
  return new Uint16Array(buffer.buffer, buffer.byteOffset + offset, count);
}

function isFloats(data: unknown): data is Float32Array {
  return Object.prototype.toString.call(data) === '[object Float32Array]';
}

function isHalves(data: unknown): data is Uint16Array {
  return Object.prototype.toString.call(data) === '[object Uint16Array]';
}

function refuse(where: string, expected: string, found: string): never {
  throw new ProbeError('PROBE_INPUT', `${where}: expected ${expected}, found ${found}`, { where, expected, found });
}
