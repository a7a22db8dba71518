import type { Checkpoint } from './checkpoint.js';
import { HOST_TENSORS } from './checkpoint-tensors.js';
import { erf } from './erf.js';
import { CheckpointError, InvalidRequestError, UnsupportedShapeError } from './errors.js';
import { roundToHalf } from './float16.js';
import { type AttentionMasks, MaskCache } from './masks.js';
import { TensorFile } from './safetensors.js';

/** Options an artifact has room for. */
const MAX_OPTIONS = 32;
/** Embedding rows kept in memory; 16 MB at d 1024. */
const CACHED_ROWS = 4096;
/** Channels transposed together: few enough that the lines written stay in the processor's cache. */
const CHANNEL_BLOCK = 32;

/** One prompt, as the tokenizer and prompt builder made it. */
export interface PromptRow {
  /** Token ids, without padding. */
  readonly ids: ArrayLike<number>;
  /** Position of each option's marker in `ids`. */
  readonly markers: ArrayLike<number>;
  /** 0 choice, 1 score, 2 noul. */
  readonly qtype: number;
}

/**
 * Inputs of the graph for one row, by their names there; row-major, every value exactly representable in FP16.
 * With d channels and L positions: embeddings (1,d,1,L), masks (1,L,1,L) with the key first, type_vectors (1,d,1,1),
 * marker_map (1,L,1,32). Masks are shared between rows: don't write to them.
 */
export interface HostFeatures extends AttentionMasks {
  readonly embeddings: Float32Array;
  readonly type_vectors: Float32Array;
  readonly marker_map: Float32Array;
}

interface ActionHead {
  readonly hiddenWeight: Float32Array;
  readonly hiddenBias: Float32Array;
  readonly outWeight: Float32Array;
  readonly outBias: Float32Array;
}

/** What runs beside the graph: embedding lookup, masks and the action head, from the original checkpoint's weights. */
export class HostWeights {
  private readonly file: TensorFile;
  private readonly hidden: number;
  private readonly vocab: number;
  private readonly readRow: (row: number) => Float32Array;
  private readonly types: Float32Array;
  private readonly action: ActionHead;
  private readonly masks: MaskCache;
  private readonly rows = new Map<number, Float32Array>();

  private constructor(checkpoint: Checkpoint, file: TensorFile, types: Float32Array, action: ActionHead) {
    const { hidden, vocab, window } = checkpoint.encoder;
    this.file = file;
    this.hidden = hidden;
    this.vocab = vocab;
    this.readRow = file.rows(HOST_TENSORS.embeddings, [vocab, hidden]);
    this.types = types;
    this.action = action;
    this.masks = new MaskCache(window);
  }

  /**
   * Opens the weights and reads the small tensors; embedding rows are read when a row needs them.
   *
   * @throws CheckpointError CHECKPOINT_WEIGHTS, CHECKPOINT_TENSORS or CHECKPOINT_MISSING
   */
  static async open(checkpoint: Checkpoint): Promise<HostWeights> {
    const { hidden } = checkpoint.encoder;
    const file = await TensorFile.open(checkpoint.files.get('model.safetensors')!);
    try {
      const read = async (name: string, shape: readonly number[]) =>
        requireFinite(await file.read(name, shape), `${file.path}: ${name}`);
      const types = roundToHalf(await read(HOST_TENSORS.types, [3, hidden]));
      const action = {
        hiddenWeight: await read(HOST_TENSORS.hiddenWeight, [256, hidden + 4]),
        hiddenBias: await read(HOST_TENSORS.hiddenBias, [256]),
        outWeight: await read(HOST_TENSORS.outWeight, [checkpoint.agent.actCount, 256]),
        outBias: await read(HOST_TENSORS.outBias, [checkpoint.agent.actCount]),
      };
      return new HostWeights(checkpoint, file, requireFinite(types, `${file.path}: ${HOST_TENSORS.types}`), action);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /**
   * The graph's inputs for one row in an artifact of `length` positions, padded with `padId`. Nothing is truncated.
   *
   * @throws UnsupportedShapeError ROW_TOO_LONG or TOO_MANY_OPTIONS_FOR_GRAPH; InvalidRequestError QUESTION_INVALID for
   * a marker outside the row or an unknown question type; CheckpointError CHECKPOINT_TOKENIZER for a token id that the
   * embedding table doesn't have
   */
  features(row: PromptRow, length: number, padId: number): HostFeatures {
    checkRow(row, length);
    const { hidden, types } = this;
    const type_vectors = types.slice(row.qtype * hidden, (row.qtype + 1) * hidden);
    const marker_map = new Float32Array(length * MAX_OPTIONS);
    for (let k = 0; k < row.markers.length; k++) marker_map[row.markers[k]! * MAX_OPTIONS + k] = 1;
    const embeddings = this.embed(row.ids, length, padId);
    return { embeddings, type_vectors, marker_map, ...this.masks.get(length, row.ids.length) };
  }

  /**
   * Logits of the action head: `cls` (d values of the graph's output) and [top1, margin, entropy, k/255] of the
   * untempered probabilities, through Linear, exact GELU, Linear. Sums are in double precision, values in FP32.
   */
  actionLogits(cls: Float32Array, features: readonly [number, number, number, number]): Float32Array {
    const input = new Float32Array(this.hidden + 4);
    input.set(cls.subarray(0, this.hidden));
    input.set(features, this.hidden);
    const inner = linear(input, this.action.hiddenWeight, this.action.hiddenBias);
    for (let i = 0; i < inner.length; i++) inner[i] = (inner[i]! * (1 + erf(inner[i]! / Math.SQRT2))) / 2;
    return linear(inner, this.action.outWeight, this.action.outBias);
  }

  async close(): Promise<void> {
    this.rows.clear();
    await this.file.close();
  }

  /** Rows become columns: value (c, t) of the result is channel c of the token at position t. */
  private embed(ids: ArrayLike<number>, length: number, padId: number): Float32Array {
    const columns = Array.from(ids, (id) => this.embedding(id));
    const pad = this.embedding(padId);
    const values = new Float32Array(this.hidden * length);
    for (let first = 0; first < this.hidden; first += CHANNEL_BLOCK) {
      const end = Math.min(first + CHANNEL_BLOCK, this.hidden);
      for (let t = 0; t < length; t++) {
        const column = columns[t] ?? pad;
        for (let c = first, at = first * length + t; c < end; c++, at += length) values[at] = column[c]!;
      }
    }
    return values;
  }

  private embedding(id: number): Float32Array {
    const cached = this.rows.get(id);
    if (cached) return cached;
    if (!Number.isInteger(id) || id < 0 || id >= this.vocab) {
      throw new CheckpointError('CHECKPOINT_TOKENIZER', `token ${id} is not in the embedding table`, {
        where: this.file.path,
        expected: `0 to ${this.vocab - 1}`,
        found: id,
        hint: 'check that tokenizer and weights are of the same checkpoint',
      });
    }
    const row = requireFinite(
      roundToHalf(this.readRow(id)),
      `${this.file.path}: ${HOST_TENSORS.embeddings}, row ${id}`,
    );
    if (this.rows.size >= CACHED_ROWS) this.rows.delete(this.rows.keys().next().value!);
    this.rows.set(id, row);
    return row;
  }
}

function checkRow(row: PromptRow, length: number): void {
  const tokens = row.ids.length;
  if (tokens > length || tokens === 0) {
    throw new UnsupportedShapeError('ROW_TOO_LONG', `a row of ${tokens} tokens does not fit ${length} positions`, {
      expected: `1 to ${length} tokens`,
      found: tokens,
      hint: 'use a larger bucket, or shorten the state',
    });
  }
  const options = row.markers.length;
  if (options > MAX_OPTIONS) {
    throw new UnsupportedShapeError('TOO_MANY_OPTIONS_FOR_GRAPH', `${options} options, ${MAX_OPTIONS} fit the graph`, {
      expected: `at most ${MAX_OPTIONS} options`,
      found: options,
      hint: 'split the question, or use fewer options',
    });
  }
  const isPosition = (marker: number) => Number.isInteger(marker) && marker >= 0 && marker < tokens;
  if (Array.from(row.markers).every(isPosition) && [0, 1, 2].includes(row.qtype)) return;
  throw new InvalidRequestError('QUESTION_INVALID', 'the row has a marker outside its tokens or an unknown type', {
    expected: `markers from 0 to ${tokens - 1}; type 0, 1 or 2`,
    found: `markers ${Array.from(row.markers)}; type ${row.qtype}`,
  });
}

/** `weight` is row-major (outputs, inputs). */
function linear(input: Float32Array, weight: Float32Array, bias: Float32Array): Float32Array {
  const output = new Float32Array(bias.length);
  for (let j = 0, at = 0; j < bias.length; j++) {
    let sum = bias[j]!;
    for (let i = 0; i < input.length; i++, at++) sum += input[i]! * weight[at]!;
    output[j] = sum;
  }
  return output;
}

/** A value that half precision turns into infinity, or one that is none, would make every answer NaN. */
function requireFinite(values: Float32Array, where: string): Float32Array {
  if (values.every(Number.isFinite)) return values;
  throw new CheckpointError('CHECKPOINT_WEIGHTS', 'a weight is not a finite number in half precision', {
    where,
    expected: 'finite values up to 65504',
    found: values.find((value) => !Number.isFinite(value)),
  });
}
