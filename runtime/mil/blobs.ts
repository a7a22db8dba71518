import { closeSync, fstatSync, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { join, sep } from 'node:path';
import { isSystemError } from '../../schemas/errors.js';
import { MilError } from '../errors.js';
import type { BlobRef, MilDtype, TensorType } from './ast.js';
import { elementCount, staticShape, typeText } from './types.js';

/** What `@model_path` stands for in a blob's path: the `.mlmodelc` folder. */
const MODEL_PATH = '@model_path/';

/** A record: uint32 sentinel, uint32 element type, uint64 byte size, uint64 data offset, and reserved bytes. */
const RECORD_BYTES = 64;
const SENTINEL = 0xdeadbeef;

/** Element types as the records number them (`BlobDataType` of coremltools' MILBlob). */
const BLOB_DTYPE: Readonly<Record<number, MilDtype>> = {
  1: 'fp16',
  2: 'fp32',
  3: 'uint8',
  4: 'int8',
  6: 'int16',
  7: 'uint16',
  8: 'int4',
  9: 'uint1',
  10: 'uint2',
  11: 'uint4',
  12: 'uint3',
  13: 'uint6',
  14: 'int32',
  15: 'uint32',
};

/** Bits one element takes in a weight file. */
export const BLOB_BITS: Partial<Record<MilDtype, number>> = {
  fp16: 16,
  fp32: 32,
  uint8: 8,
  int8: 8,
  int16: 16,
  uint16: 16,
  int4: 4,
  uint1: 1,
  uint2: 2,
  uint4: 4,
  uint3: 3,
  uint6: 6,
  int32: 32,
  uint32: 32,
};

/** One tensor's bytes in a weight file; `key` is equal for equal places. */
export interface Blob {
  readonly type: TensorType;
  readonly key: string;
  readonly byteLength: number;
  /** Reads `into.byteLength` bytes from `start` on; files of any size work. */
  read(start: number, into: Uint8Array): void;
}

interface OpenFile {
  readonly fd: number;
  readonly size: number;
}

function refuse(where: string, expected: string, found: string): never {
  throw new MilError('MIL_BLOB', `${where}: expected ${expected}, found ${found}`, {
    expected,
    found,
    where,
    hint: 'The weight file and model.mil do not belong together, or one is damaged; compile the model again.',
  });
}

/** The weight files of one `.mlmodelc`, opened when first used. */
export class BlobFiles {
  private readonly root: string;
  private readonly files = new Map<string, OpenFile>();

  constructor(dir: string) {
    this.root = dir;
  }

  /**
   * Finds the tensor a reference names and checks its record against the declared type.
   *
   * @throws MilError `MIL_BLOB` when the path leaves the model folder or is no regular file, when the record lies
   *   outside the file, has no sentinel, another element type or another size than declared, or points outside.
   */
  open(ref: BlobRef, type: TensorType): Blob {
    const where = `${ref.path} at ${ref.offset}`;
    const { fd, size } = this.file(ref.path);
    if (!Number.isSafeInteger(ref.offset) || ref.offset + RECORD_BYTES > size) {
      refuse(where, `a record inside the file's ${size} bytes`, `offset ${ref.offset}`);
    }
    const record = new DataView(new ArrayBuffer(RECORD_BYTES));
    readFully(fd, ref.offset, new Uint8Array(record.buffer), where);
    const sentinel = record.getUint32(0, true);
    if (sentinel !== SENTINEL) refuse(where, 'a record that starts with 0xdeadbeef', `0x${sentinel.toString(16)}`);
    const code = record.getUint32(4, true);
    if (BLOB_DTYPE[code] !== type.dtype) refuse(where, type.dtype, BLOB_DTYPE[code] ?? `element type ${code}`);
    const byteLength = Number(record.getBigUint64(8, true));
    const start = Number(record.getBigUint64(16, true));
    const shape = staticShape(type);
    if (!shape) refuse(where, 'a type of known size', typeText(type));
    const declared = Math.ceil((elementCount(shape) * (BLOB_BITS[type.dtype] as number)) / 8);
    if (byteLength !== declared) refuse(where, `${declared} bytes for ${typeText(type)}`, `${byteLength} bytes`);
    if (start + byteLength > size) {
      refuse(where, `data inside the file's ${size} bytes`, `bytes ${start} to ${start + byteLength}`);
    }
    return {
      type,
      key: `${ref.path}@${start}`,
      byteLength,
      read: (from, into) => readFully(fd, start + from, into, where),
    };
  }

  close(): void {
    for (const { fd } of this.files.values()) closeSync(fd);
    this.files.clear();
  }

  private file(path: string): OpenFile {
    const known = this.files.get(path);
    if (known) return known;
    const real = this.resolve(path);
    if (!statSync(real).isFile()) refuse(path, 'a regular file', 'something else');
    const fd = openSync(real, 'r');
    const file = { fd, size: fstatSync(fd).size };
    this.files.set(path, file);
    return file;
  }

  /** The real path of a blob file, which must lie under the real path of the model folder. */
  private resolve(path: string): string {
    const parts = path.slice(MODEL_PATH.length).split('/');
    const inside =
      path.startsWith(MODEL_PATH) && parts.every((part) => /^[^\\:\0]+$/.test(part) && !/^\.+$/.test(part));
    if (!inside) refuse(path, `a path under ${MODEL_PATH}`, path);
    try {
      const root = realpathSync(this.root);
      const real = realpathSync(join(root, ...parts));
      if (real.startsWith(root + sep)) return real;
    } catch (error) {
      if (isSystemError(error)) refuse(path, 'a weight file', String(error.code));
      throw error;
    }
    return refuse(path, 'a file under the model folder', 'a link that leaves it');
  }
}

function readFully(fd: number, position: number, into: Uint8Array, where: string): void {
  for (let done = 0; done < into.byteLength; ) {
    const count = readSync(fd, into, done, Math.min(into.byteLength - done, 2 ** 30), position + done);
    if (count === 0) refuse(where, `${into.byteLength} bytes`, `the end of the file after ${done}`);
    done += count;
  }
}
