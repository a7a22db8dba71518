import { type FileHandle, open } from 'node:fs/promises';
import type { PlannedTensor } from './onnx-graph.js';
import { encodeOnnxModel, type OnnxInitializer } from './onnx-proto.js';
import type { Translation } from './translate.js';

/** Tensors from this size on go to the data file; smaller ones stay in the model. */
const EXTERNAL_BYTES = 16 * 1024;

/** Data starts on page boundaries, so that the file can be mapped. */
const ALIGNMENT = 4096;

/** Bytes of all constants as the graph computes with them. */
export function weightBytes(translation: Translation): number {
  return translation.tensors.reduce((sum, tensor) => sum + tensor.byteLength, 0);
}

/** A tensor whose blocks are more or fewer bytes than planned would shift every one behind it. */
function checkSize(tensor: PlannedTensor, bytes: number): void {
  if (bytes !== tensor.byteLength) throw new RangeError(`${tensor.name}: ${bytes} bytes, not ${tensor.byteLength}`);
}

function inline(tensor: PlannedTensor): OnnxInitializer {
  const blocks = [...tensor.blocks()];
  const data = blocks.length === 1 ? (blocks[0] as Uint8Array) : Buffer.concat(blocks);
  checkSize(tensor, data.length);
  return { name: tensor.name, dtype: tensor.dtype, dims: tensor.dims, data };
}

function encode(translation: Translation, initializers: readonly OnnxInitializer[]): Uint8Array {
  const { nodes, graphInputs: inputs, graphOutputs: outputs } = translation;
  return encodeOnnxModel({ graphName: 'main', nodes, initializers, inputs, outputs });
}

/** The model with all its weights inside; for models well below 2 GiB. */
export function inlineModel(translation: Translation): Uint8Array {
  return encode(translation, translation.tensors.map(inline));
}

/** A model that expects its large tensors in a file of this name beside it, and where each of them lies there. */
export interface ExternalModel {
  readonly bytes: Uint8Array;
  readonly placed: readonly { readonly tensor: PlannedTensor; readonly offset: number }[];
}

/** The model without its large tensors. The same translation gives the same bytes. */
export function externalModel(translation: Translation, location: string): ExternalModel {
  const placed: { tensor: PlannedTensor; offset: number }[] = [];
  let end = 0;
  const initializers = translation.tensors.map((tensor) => {
    const { name, dtype, dims, byteLength: length } = tensor;
    if (length < EXTERNAL_BYTES) return inline(tensor);
    const offset = Math.ceil(end / ALIGNMENT) * ALIGNMENT;
    end = offset + length;
    placed.push({ tensor, offset });
    return { name, dtype, dims, data: { location, offset, length } };
  });
  return { bytes: encode(translation, initializers), placed };
}

async function writeFully(file: FileHandle, block: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < block.length; ) {
    done += (await file.write(block, done, block.length - done, position + done)).bytesWritten;
  }
}

/**
 * Writes the data file of an external model and brings it to the disk. While one block is written the next is read;
 * no more than these two are in memory.
 */
export async function writeData(model: ExternalModel, path: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  let writing: Promise<void> | undefined;
  try {
    for (const { tensor, offset } of model.placed) {
      let at = 0;
      for (const block of tensor.blocks()) {
        await writing;
        writing = writeFully(file, block, offset + at);
        at += block.length;
      }
      checkSize(tensor, at);
    }
    await writing;
    await file.sync();
  } finally {
    await writing?.catch(() => undefined);
    await file.close();
  }
}
