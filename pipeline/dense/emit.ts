import { type FileHandle, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DENSE_DATA, DENSE_MODEL } from '../../registry/dense.js';
import type { Checkpoint } from '../../runtime/checkpoint.js';
import { encodeOnnxModel, type OnnxInitializer, type OnnxValueInfo } from '../../runtime/mil/onnx-proto.js';
import { TensorFile } from '../../runtime/safetensors.js';
import { denseGraph } from './graph.js';
import type { WeightTensor } from './nodes.js';

/** A weight starts on a page boundary, so that the file can be mapped. */
const ALIGNMENT = 4096;

const INPUTS: readonly OnnxValueInfo[] = [
  { name: 'ids', dtype: 'int64', dims: ['rows', 'tokens'] },
  { name: 'lengths', dtype: 'int64', dims: ['rows'] },
  { name: 'types', dtype: 'int64', dims: ['rows'] },
  { name: 'markers', dtype: 'int64', dims: ['rows', 'options'] },
];

/**
 * Writes the dense graph of a checkpoint into a folder: the model, and its weights in float32 in a file beside it. One
 * tensor is in memory at a time. The same checkpoint gives the same bytes. Gives how often each operator occurs.
 * Throws CheckpointError for weights that can't be read.
 */
export async function emitDense(checkpoint: Checkpoint, folder: string): Promise<Record<string, number>> {
  const { nodes, weights, views, constants } = denseGraph(checkpoint);
  const offsets = new Map<WeightTensor, number>();
  let end = 0;
  for (const weight of weights) {
    const offset = Math.ceil(end / ALIGNMENT) * ALIGNMENT;
    offsets.set(weight, offset);
    end = offset + bytesOf(weight.dims);
  }
  const initializers = views.map(({ name, dims, of, firstRow }): OnnxInitializer => {
    const offset = offsets.get(of)! + firstRow * bytesOf(of.dims.slice(1));
    return { name, dtype: 'float32', dims, data: { location: DENSE_DATA, offset, length: bytesOf(dims) } };
  });
  const outputs: OnnxValueInfo[] = [
    { name: 'logits', dtype: 'float32', dims: ['rows', 'options'] },
    { name: 'cls', dtype: 'float32', dims: ['rows', checkpoint.encoder.hidden] },
    { name: 'pooled', dtype: 'float32', dims: ['rows', checkpoint.encoder.hidden] },
  ];
  const all = [...initializers, ...constants];
  const bytes = encodeOnnxModel({ graphName: 'dense-any', nodes, initializers: all, inputs: INPUTS, outputs });
  await writeFile(join(folder, DENSE_MODEL), bytes, { flag: 'wx', mode: 0o644 });
  await writeWeights(checkpoint, offsets, join(folder, DENSE_DATA));
  const operations = new Map<string, number>();
  for (const { op } of nodes) operations.set(op, (operations.get(op) ?? 0) + 1);
  return Object.fromEntries([...operations].sort());
}

const bytesOf = (dims: readonly number[]): number => 4 * dims.reduce((product, dim) => product * dim, 1);

async function writeWeights(
  checkpoint: Checkpoint,
  offsets: ReadonlyMap<WeightTensor, number>,
  path: string,
): Promise<void> {
  const weights = await TensorFile.open(checkpoint.files.get('model.safetensors')!);
  const out = await open(path, 'wx', 0o644).catch(async (error: unknown) => {
    await weights.close();
    throw error;
  });
  try {
    for (const [{ name, dims }, offset] of offsets) await writeFully(out, await weights.read(name, dims), offset);
  } finally {
    await out.close();
    await weights.close();
  }
}

async function writeFully(file: FileHandle, values: Float32Array, position: number): Promise<void> {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  for (let done = 0; done < bytes.length; )
    done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
}
