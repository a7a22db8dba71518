import { writeFile } from 'node:fs/promises';
import { toHalfBits } from '../../runtime/float16.js';

/** A tensor to write; values are stored as `dtype`. */
export interface NewTensor {
  readonly name: string;
  readonly dtype: 'F16' | 'F32';
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/** A `.safetensors` file with this header text and these data bytes, whatever they are. */
export function rawSafetensors(header: string | Uint8Array, data: Uint8Array = new Uint8Array()): Buffer {
  const text = Buffer.from(header as string);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, data]);
}

export function tensorBytes(values: Float32Array, dtype: 'F16' | 'F32'): Buffer {
  const view = dtype === 'F32' ? values : Uint16Array.from(values, toHalfBits);
  return Buffer.from(view.buffer, view.byteOffset, view.byteLength);
}

export async function writeSafetensors(path: string, tensors: readonly NewTensor[]): Promise<void> {
  const header: Record<string, unknown> = {};
  const parts: Buffer[] = [];
  let at = 0;
  for (const { name, dtype, shape, values } of tensors) {
    const bytes = tensorBytes(values, dtype);
    header[name] = { dtype, shape, data_offsets: [at, at + bytes.length] };
    parts.push(bytes);
    at += bytes.length;
  }
  await writeFile(path, rawSafetensors(JSON.stringify(header), Buffer.concat(parts)));
}
