import { availableParallelism } from 'node:os';
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { BackendUnavailableError, MilError } from '../errors.js';
import type { ModelRow } from '../forward.js';

export interface DenseOptions {
  /** Threads of one run; default: the processors this process may use. */
  readonly threads?: number | undefined;
  /** ONNX Runtime writes its profile to a file with this prefix when `endProfiling` is called. */
  readonly profilePrefix?: string;
}

/** What the graph gives for one row: a logit per option, and d values of the first token's state. */
export interface DenseRow {
  readonly logits: number[];
  readonly cls: Float32Array;
}

type Ort = typeof import('onnxruntime-node');

/** An any-length graph loaded for ONNX Runtime's CPU provider; weights are mapped from the file beside the model. */
export class DenseSession {
  readonly #ort: Ort;
  readonly #session: InferenceSession;
  #released = false;

  private constructor(ort: Ort, session: InferenceSession) {
    this.#ort = ort;
    this.#session = session;
  }

  /** Opens `model.onnx`. Throws MilError MIL_RUN when ONNX Runtime refuses it, MIL_INPUT for a bad thread count. */
  static async open(path: string, options: DenseOptions = {}): Promise<DenseSession> {
    const threads = options.threads ?? availableParallelism();
    if (!Number.isInteger(threads) || threads < 1 || threads > 1024)
      throw new MilError('MIL_INPUT', 'threads must be a whole number from 1 to 1024', { found: threads });
    const ort = await import('onnxruntime-node');
    const session = await ort.InferenceSession.create(path, {
      executionProviders: ['cpu'],
      executionMode: 'sequential',
      // What runs is exactly the nodes that the graph names.
      graphOptimizationLevel: 'disabled',
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      extra: { session: { force_spinning_stop: '1' } },
      logSeverityLevel: 4,
      ...(options.profilePrefix === undefined
        ? {}
        : { enableProfiling: true, profileFilePrefix: options.profilePrefix }),
    }).catch((error: unknown) => {
      throw runError('the any-length graph was refused', error, path);
    });
    return new DenseSession(ort, session);
  }

  /** Runs rows together, each padded to the longest one; at least one row. Throws MilError MIL_RUN. */
  async run(rows: readonly ModelRow[]): Promise<DenseRow[]> {
    const results = await this.#run(rows, ['logits', 'cls']);
    const [logits, cls] = [results.logits?.data as Float32Array, results.cls?.data as Float32Array];
    const [options, hidden] = [logits.length / rows.length, cls.length / rows.length];
    return rows.map(({ markers }, i) => ({
      logits: Array.from(logits.subarray(i * options, i * options + markers.length)),
      cls: cls.slice(i * hidden, (i + 1) * hidden),
    }));
  }

  /** False for a graph of a release that had no such output. */
  get canPool(): boolean {
    return this.#session.outputNames.includes('pooled');
  }

  /**
   * The mean of the encoder's states over each list of token ids, d values each; at least one list, none of them empty.
   * Throws MilError MIL_RUN.
   */
  async pool(ids: readonly (readonly number[])[]): Promise<Float32Array[]> {
    const rows = ids.map((list): ModelRow => ({ ids: [...list], markers: [0], qtype: 0 }));
    const { pooled } = await this.#run(rows, ['pooled']);
    const values = pooled!.data as Float32Array;
    const hidden = values.length / rows.length;
    return rows.map((_, i) => values.slice(i * hidden, (i + 1) * hidden));
  }

  async #run(rows: readonly ModelRow[], outputs: readonly string[]): Promise<InferenceSession.OnnxValueMapType> {
    if (this.#released) throw new BackendUnavailableError('CLOSED', 'the model was closed', { hint: 'open it again' });
    return this.#session.run(this.#feeds(rows), outputs).catch((error: unknown) => {
      throw runError('the any-length graph failed', error);
    });
  }

  #feeds(rows: readonly ModelRow[]): Record<string, Tensor> {
    const matrix = (lists: readonly (readonly number[])[]): Tensor => {
      const width = Math.max(...lists.map((list) => list.length));
      const values = new BigInt64Array(lists.length * width);
      for (const [i, list] of lists.entries())
        for (const [j, value] of list.entries()) values[i * width + j] = BigInt(value);
      return new this.#ort.Tensor('int64', values, [lists.length, width]);
    };
    const vector = (list: readonly number[]): Tensor =>
      new this.#ort.Tensor('int64', BigInt64Array.from(list, BigInt), [list.length]);
    return {
      ids: matrix(rows.map(({ ids }) => ids)),
      lengths: vector(rows.map(({ ids }) => ids.length)),
      types: vector(rows.map(({ qtype }) => qtype)),
      markers: matrix(rows.map(({ markers }) => markers)),
    };
  }

  endProfiling(): void {
    this.#session.endProfiling();
  }

  /** Frees the model; may be called again. */
  async release(): Promise<void> {
    if (this.#released) return;
    this.#released = true;
    await this.#session.release();
  }
}

function runError(what: string, cause: unknown, where?: string): MilError {
  const detail = cause instanceof Error ? cause.message : String(cause);
  return new MilError('MIL_RUN', `ONNX Runtime: ${what}: ${detail}`, {
    found: detail,
    cause,
    ...(where === undefined ? {} : { where }),
  });
}
