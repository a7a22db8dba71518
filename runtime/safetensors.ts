import { readSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { CheckpointError } from './errors.js';
import { widenHalf } from './float16.js';
import {
  headerLength,
  LENGTH_FIELD,
  parseHeader,
  quoteName,
  type TensorEntry,
  type TensorTable,
} from './safetensors-header.js';

export type { TensorDtype, TensorEntry, TensorTable } from './safetensors-header.js';

/** Largest single read; reads of 2 GiB and more fail on some systems. */
const READ_CHUNK = 64 << 20;

/**
 * An open `.safetensors` file. Its header has been checked whole; tensors are read by position, never the whole file.
 * F16 and F32 tensors are handed out as float32; others are listed in `table` but not read.
 */
export class TensorFile {
  readonly path: string;
  readonly table: TensorTable;
  private readonly handle: FileHandle;

  private constructor(path: string, table: TensorTable, handle: FileHandle) {
    this.path = path;
    this.table = table;
    this.handle = handle;
  }

  /**
   * Opens a file and checks its header. The file stays open until `close`.
   *
   * @throws CheckpointError CHECKPOINT_WEIGHTS for a file that is truncated, has more bytes than it declares, or whose
   * header is not what the format asks for; CHECKPOINT_MISSING when it can't be opened
   */
  static async open(path: string): Promise<TensorFile> {
    const handle = await open(path, 'r').catch((cause: unknown) => {
      throw new CheckpointError('CHECKPOINT_MISSING', `can't open the weights: ${String(cause)}`, {
        where: path,
        cause,
      });
    });
    try {
      return new TensorFile(path, await readTable(handle, path), handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /**
   * One tensor's values, row-major.
   *
   * @throws CheckpointError CHECKPOINT_TENSORS for a tensor that is absent, or of another shape or element type than
   * asked for; CHECKPOINT_WEIGHTS when its bytes can't be read
   */
  async read(name: string, shape: readonly number[]): Promise<Float32Array> {
    const entry = this.entry(name, shape);
    const bytes = new Uint8Array(entry.end - entry.begin);
    for (let at = 0; at < bytes.length; ) {
      const length = Math.min(READ_CHUNK, bytes.length - at);
      const { bytesRead } = await this.handle.read(bytes, at, length, entry.begin + at);
      if (bytesRead === 0) throw this.cutShort(name);
      at += bytesRead;
    }
    return toFloat32(bytes, entry.dtype);
  }

  /**
   * A reader of single rows of a matrix, for the rows a request needs. It reads synchronously: a row is a few KB.
   * Throws as `read` does; the row number must be inside the matrix.
   */
  rows(name: string, shape: readonly [number, number]): (row: number) => Float32Array {
    const entry = this.entry(name, shape);
    const rowBytes = (entry.end - entry.begin) / shape[0];
    return (row) => {
      const bytes = new Uint8Array(rowBytes);
      for (let at = 0; at < rowBytes; ) {
        const count = readSync(this.handle.fd, bytes, at, rowBytes - at, entry.begin + row * rowBytes + at);
        if (count === 0) throw this.cutShort(name);
        at += count;
      }
      return toFloat32(bytes, entry.dtype);
    };
  }

  async close(): Promise<void> {
    await this.handle.close();
  }

  private entry(name: string, shape: readonly number[]): TensorEntry {
    const entry = this.table.get(name);
    const where = `${this.path}: ${quoteName(name)}`;
    if (entry === undefined) {
      throw new CheckpointError('CHECKPOINT_TENSORS', `tensor ${quoteName(name)} is missing`, { where });
    }
    const found = `${entry.dtype} [${entry.shape}]`;
    const expected = `F16 or F32 [${shape}]`;
    if ((entry.dtype === 'F16' || entry.dtype === 'F32') && `${entry.shape}` === `${shape}`) return entry;
    throw new CheckpointError('CHECKPOINT_TENSORS', `tensor ${quoteName(name)}: expected ${expected}, found ${found}`, {
      where,
      expected,
      found,
    });
  }

  private cutShort(name: string): CheckpointError {
    const message = `the file ended inside tensor ${quoteName(name)}: it was changed while it was read`;
    return new CheckpointError('CHECKPOINT_WEIGHTS', message, { where: this.path });
  }
}

/**
 * The tensors of a `.safetensors` file. Throws as `TensorFile.open` does.
 */
export async function readTensorTable(path: string): Promise<TensorTable> {
  const file = await TensorFile.open(path);
  await file.close();
  return file.table;
}

async function readTable(handle: FileHandle, path: string): Promise<TensorTable> {
  const status = await handle.stat();
  if (!status.isFile()) {
    throw new CheckpointError('CHECKPOINT_MISSING', 'the weights are not a regular file', { where: path });
  }
  const { size } = status;
  const length = headerLength(await readStart(handle, LENGTH_FIELD, 0), size, path);
  return parseHeader(await readStart(handle, length, LENGTH_FIELD), size, path);
}

/** Up to `length` bytes from `position`; fewer when the file ends before. */
async function readStart(handle: FileHandle, length: number, position: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  let at = 0;
  while (at < length) {
    const { bytesRead } = await handle.read(bytes, at, length - at, position + at);
    if (bytesRead === 0) break;
    at += bytesRead;
  }
  return bytes.subarray(0, at);
}

/** `bytes` starts at offset 0 of its own buffer, so both views are aligned. The format is little-endian. */
function toFloat32(bytes: Uint8Array, dtype: string): Float32Array {
  const { buffer } = bytes;
  return dtype === 'F16' ? widenHalf(new Uint16Array(buffer)) : new Float32Array(buffer);
}
