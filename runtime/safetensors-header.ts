import { isUtf8 } from 'node:buffer';
import { JsonNumber, type JsonObject, type JsonValue, parseJson } from '../schemas/json.js';
import { CheckpointError } from './errors.js';

/** Element types of the format, and their size in bits. */
const DTYPE_BITS = {
  BOOL: 8,
  U8: 8,
  I8: 8,
  F8_E5M2: 8,
  F8_E4M3: 8,
  I16: 16,
  U16: 16,
  F16: 16,
  BF16: 16,
  I32: 32,
  U32: 32,
  F32: 32,
  F64: 64,
  I64: 64,
  U64: 64,
} as const;

export type TensorDtype = keyof typeof DTYPE_BITS;

/** Where one tensor's bytes are. */
export interface TensorEntry {
  readonly dtype: TensorDtype;
  readonly shape: readonly number[];
  /** First byte, counted from the start of the file. */
  readonly begin: number;
  /** One past the last byte, counted from the start of the file. */
  readonly end: number;
}

/** Tensors by name, in the header's order. */
export type TensorTable = ReadonlyMap<string, TensorEntry>;

/** Size of the header's length, at the start of a file. */
export const LENGTH_FIELD = 8;

/** A checkpoint of the largest model has a header of about 30 KB. */
const MAX_HEADER_BYTES = 8 << 20;
const MAX_RANK = 8;

/** A name as it may stand in a message: one line, bounded. */
export const quoteName = (name: string): string => JSON.stringify(name.slice(0, 80));

/**
 * The header's length, from a file's first bytes and its size.
 *
 * @throws CheckpointError CHECKPOINT_WEIGHTS for a file too small to hold it, or a length outside the bounds
 */
export function headerLength(prefix: Buffer, fileSize: number, path: string): number {
  if (prefix.length < LENGTH_FIELD) refuse(path, 'the file is too small', '8 bytes or more', `${fileSize} bytes`);
  const length = prefix.readBigUInt64LE(0);
  const room = Math.min(fileSize - LENGTH_FIELD, MAX_HEADER_BYTES);
  if (length < 2n || length > BigInt(room)) {
    refuse(path, 'the header length is out of bounds', `2 to ${room} bytes`, `${length} bytes`);
  }
  return Number(length);
}

/**
 * The tensors that a header lists. Their bytes must fill the rest of the file exactly: no gap, no overlap, no rest.
 *
 * @throws CheckpointError CHECKPOINT_WEIGHTS with the tensor in `where`
 */
export function parseHeader(bytes: Buffer, fileSize: number, path: string): TensorTable {
  const header = parseObject(bytes, path);
  const start = LENGTH_FIELD + bytes.length;
  const table = new Map<string, TensorEntry>();
  for (const [name, value] of header) {
    const where = `${path}: ${quoteName(name)}`;
    if (name === '__metadata__') checkMetadata(value, where);
    else table.set(name, parseEntry(value, where, start, fileSize));
  }
  checkCoverage(table, start, fileSize, path);
  return table;
}

function parseObject(bytes: Buffer, path: string): JsonObject {
  const expected = 'a JSON object in UTF-8 that starts with "{"';
  if (!isUtf8(bytes) || bytes[0] !== 0x7b) refuse(path, 'the header is not valid', expected, 'other bytes');
  try {
    return parseJson(bytes.toString('utf8'), { maxDepth: 4 }) as JsonObject;
  } catch (cause) {
    return refuse(path, 'the header is not valid', expected, (cause as Error).message.slice(0, 200), cause);
  }
}

function checkMetadata(value: JsonValue, where: string): void {
  const isTexts = value instanceof Map && [...value.values()].every((text) => typeof text === 'string');
  if (!isTexts) refuse(where, 'the metadata is not valid', 'an object of texts', 'something else');
}

function parseEntry(value: JsonValue, where: string, start: number, fileSize: number): TensorEntry {
  if (!(value instanceof Map)) return refuse(where, 'the entry is not valid', 'an object', 'something else');
  const keys = [...value.keys()].sort().join(' ');
  if (keys !== 'data_offsets dtype shape') {
    refuse(where, 'the entry is not valid', 'dtype, shape and data_offsets', keys.slice(0, 120));
  }
  const dtype = value.get('dtype');
  if (typeof dtype !== 'string' || !Object.hasOwn(DTYPE_BITS, dtype)) {
    refuse(where, 'the element type is unknown', Object.keys(DTYPE_BITS).join(', '), describe(dtype));
  }
  const shape = naturals(value.get('shape'));
  if (!shape || shape.length > MAX_RANK) {
    return refuse(where, 'the shape is not valid', `up to ${MAX_RANK} sizes`, describe(value.get('shape')));
  }
  const [from, to, ...more] = naturals(value.get('data_offsets')) ?? [];
  const room = fileSize - start;
  if (from === undefined || to === undefined || more.length > 0 || from > to || to > room) {
    const expected = `a range within the ${room} bytes of data`;
    return refuse(where, 'the tensor is outside the file', expected, describe(value.get('data_offsets')));
  }
  const needed = (shape.reduce((product, size) => product * size, 1) * DTYPE_BITS[dtype as TensorDtype]) / 8;
  if (needed !== to - from) {
    const expected = `${needed} bytes for ${dtype} [${shape}]`;
    refuse(where, 'the shape and the byte range disagree', expected, `${to - from} bytes`);
  }
  return { dtype: dtype as TensorDtype, shape, begin: start + from, end: start + to };
}

/** Natural numbers that JavaScript holds exactly, or undefined. */
function naturals(value: JsonValue | undefined): number[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const numbers: number[] = [];
  for (const item of value) {
    const number = item instanceof JsonNumber && /^[0-9]{1,16}$/.test(item.raw) ? Number(item.raw) : Number.NaN;
    if (!Number.isSafeInteger(number)) return undefined;
    numbers.push(number);
  }
  return numbers;
}

function checkCoverage(table: TensorTable, start: number, fileSize: number, path: string): void {
  let covered = start;
  for (const [name, { begin, end }] of [...table].sort(([, a], [, b]) => a.begin - b.begin || a.end - b.end)) {
    if (begin !== covered) {
      const what = begin < covered ? 'two tensors overlap' : 'there is a gap between tensors';
      refuse(`${path}: ${quoteName(name)}`, what, `its first byte at ${covered}`, `at ${begin}`);
    }
    covered = end;
  }
  if (covered !== fileSize) refuse(path, 'the file has bytes of no tensor', `${covered} bytes`, `${fileSize} bytes`);
}

function describe(value: JsonValue | undefined): string {
  if (value === undefined) return 'nothing';
  if (value instanceof JsonNumber) return value.raw.slice(0, 40);
  if (Array.isArray(value)) return `[${value.slice(0, MAX_RANK + 1).map(describe)}]`.slice(0, 120);
  return value instanceof Map ? 'an object' : quoteName(String(value));
}

function refuse(where: string, what: string, expected: string, found: string, cause?: unknown): never {
  throw new CheckpointError('CHECKPOINT_WEIGHTS', `${what}: expected ${expected}, found ${found}`, {
    where,
    expected,
    found,
    hint: 'fetch the checkpoint again, or point --checkpoint at an undamaged copy',
    ...(cause === undefined ? {} : { cause }),
  });
}
