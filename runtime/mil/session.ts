import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { MilError } from '../errors.js';
import { BlobFiles } from './blobs.js';
import { type CachePlace, checkCacheKey, DATA_FILE, storeModel } from './cache.js';
import { parseMil } from './parser.js';
import { type Precision, precisionOf } from './precision.js';
import { type TensorSpec, type Translation, translate } from './translate.js';
import { readMilText } from './tree.js';
import { externalModel, inlineModel, weightBytes } from './weights.js';

export type { CachePlace } from './cache.js';
export type { Precision } from './precision.js';
export type { TensorSpec } from './translate.js';

export interface MlmodelcOptions {
  /** Threads of one run; default: the processors this process may use. */
  readonly threads?: number;
  /** Where a large model's translated weights are kept; without, they are translated at every opening. */
  readonly cache?: CachePlace | null;
  /** Compute attention for all heads at once, and on matrices; default true. False: one node per operation. */
  readonly fuse?: boolean;
}

/** Options of a profiled run beside. */
export interface LoadOptions extends MlmodelcOptions {
  /** ONNX Runtime writes its profile to a file with this prefix when `endProfiling` is called. */
  readonly profilePrefix?: string;
  /** Weights of at least this many bytes, in float32, are loaded from a file, which is mapped; default 64 MiB. */
  readonly fileBytes?: number;
}

/** A compiled model loaded for ONNX Runtime's CPU provider. */
export interface PortableModel {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly precision: Precision;
  /** How often each operation occurs in the MIL program, constants included. */
  readonly operations: Readonly<Record<string, number>>;
  /** Row-major elements of every input, in float32 whatever its type; likewise the outputs. MilError `MIL_INPUT`, `MIL_RUN`. */
  run(inputs: Record<string, Float32Array>): Promise<Record<string, Float32Array>>;
  /** Frees the model after the runs in progress; may be called again. */
  release(): Promise<void>;
}

/** A model together with the translation it runs. */
export interface LoadedModel extends PortableModel {
  readonly translation: Translation;
  endProfiling(): void;
}

const FILE_BYTES = 64 * 1024 * 1024;

const MAX_THREADS = 1024;

type Ort = typeof import('onnxruntime-node');
type Settings = InferenceSession.SessionOptions;

function refuse(where: string, expected: string, found: string): never {
  throw new MilError('MIL_INPUT', `${where}: expected ${expected}, found ${found}`, { expected, found, where });
}

function sessionOptions(options: LoadOptions): Settings {
  const threads = options.threads ?? availableParallelism();
  if (!Number.isInteger(threads) || threads < 1 || threads > MAX_THREADS) {
    refuse('threads', `a whole number from 1 to ${MAX_THREADS}`, String(threads));
  }
  return {
    executionProviders: ['cpu'],
    executionMode: 'sequential',
    // The translation is final: what runs is exactly the nodes it names.
    graphOptimizationLevel: 'disabled',
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    // Threads wait busily for the next node of a run, and sleep between runs.
    extra: { session: { force_spinning_stop: '1' } },
    // Failures are thrown; nothing is printed.
    logSeverityLevel: 4,
    ...(options.profilePrefix === undefined ? {} : { enableProfiling: true, profileFilePrefix: options.profilePrefix }),
  };
}

/** Large weights are used where they are mapped: processes share them, and no time goes into copies of them. */
const mapped = (settings: Settings): Settings => ({
  ...settings,
  extra: { session: { ...(settings.extra?.session as object), disable_prepacking: '1' } },
});

class OrtModel implements LoadedModel {
  readonly translation: Translation;
  readonly precision: Precision;
  private readonly ort: Ort;
  private readonly pending = new Set<Promise<unknown>>();
  private readonly temporary: string | undefined;
  private session: InferenceSession | undefined;

  constructor(translation: Translation, ort: Ort, session: InferenceSession, temporary: string | undefined) {
    this.translation = translation;
    this.precision = precisionOf(translation);
    this.ort = ort;
    this.session = session;
    this.temporary = temporary;
  }

  get inputs(): readonly TensorSpec[] {
    return this.translation.inputs;
  }

  get outputs(): readonly TensorSpec[] {
    return this.translation.outputs;
  }

  get operations(): Readonly<Record<string, number>> {
    return this.translation.operations;
  }

  async run(inputs: Record<string, Float32Array>): Promise<Record<string, Float32Array>> {
    const { session } = this;
    if (!session) throw new MilError('MIL_RUN', 'the model was released', { hint: 'Open it again.' });
    const run = session.run(this.feeds(inputs));
    this.pending.add(run);
    try {
      const results = await run;
      return Object.fromEntries(this.outputs.map(({ name }) => [name, results[name]?.data as Float32Array]));
    } catch (error) {
      throw ortError('the graph failed', error);
    } finally {
      this.pending.delete(run);
    }
  }

  private feeds(inputs: Record<string, Float32Array>): Record<string, Tensor> {
    const names = this.inputs.map((input) => input.name);
    const unknown = Object.keys(inputs).find((name) => !names.includes(name));
    if (unknown !== undefined) refuse(unknown, `one of ${names.join(', ')}`, 'another input');
    const feeds = this.inputs.map(({ name, shape }) => {
      const data: unknown = Object.hasOwn(inputs, name) ? inputs[name] : undefined;
      if (!isFloat32Array(data)) refuse(name, 'a Float32Array', data === undefined ? 'nothing' : typeof data);
      const count = shape.reduce((product, dim) => product * dim, 1);
      if (data.length !== count) refuse(name, `${count} elements, shape [${shape.join(', ')}]`, `${data.length}`);
      return [name, new this.ort.Tensor('float32', data, shape)] as const;
    });
    return Object.fromEntries(feeds);
  }

  endProfiling(): void {
    this.session?.endProfiling();
  }

  async release(): Promise<void> {
    const { session } = this;
    this.session = undefined;
    await Promise.allSettled(this.pending);
    await session?.release();
    await discard(this.temporary);
  }
}

function isFloat32Array(data: unknown): data is Float32Array {
  return Object.prototype.toString.call(data) === '[object Float32Array]';
}

function ortError(what: string, cause: unknown): MilError {
  const detail = cause instanceof Error ? cause.message : String(cause);
  return new MilError('MIL_RUN', `ONNX Runtime: ${what}: ${detail}`, { found: detail, cause });
}

async function createSession(ort: Ort, model: Uint8Array | string, options: Settings) {
  try {
    return typeof model === 'string'
      ? await ort.InferenceSession.create(model, options)
      : await ort.InferenceSession.create(model, options);
  } catch (error) {
    throw ortError('the translated graph was refused', error);
  }
}

/** Removes a folder of mapped files; where the system keeps mapped files in place, the folder is returned. */
async function discard(folder: string | undefined): Promise<string | undefined> {
  if (folder === undefined) return undefined;
  return rm(folder, { recursive: true, force: true }).then(
    () => undefined,
    () => folder,
  );
}

/** How often a copy in the cache that is replaced while it is loaded is tried again, before a private one is made. */
const CACHE_ATTEMPTS = 3;

/** Loads the weights from a file; the session and the folder that has to stay while it lives. */
async function createMapped(
  ort: Ort,
  dir: string,
  translation: Translation,
  cache: CachePlace | null,
  settings: Settings,
) {
  const model = externalModel(translation, DATA_FILE);
  for (let attempt = 1; ; attempt++) {
    const stored = await storeModel(dir, attempt > CACHE_ATTEMPTS ? null : cache, model);
    let session: InferenceSession | undefined;
    try {
      session = await createSession(ort, stored.path, settings);
      if (stored.unchanged()) return { session, temporary: await discard(stored.temporary) };
    } catch (error) {
      await discard(stored.temporary);
      if (stored.unchanged()) throw error;
    }
    await session?.release();
  }
}

/** Translates and loads; `PortableModel` with what the profile needs beside. */
export async function loadMlmodelc(dir: string, options: LoadOptions = {}): Promise<LoadedModel> {
  const settings = sessionOptions(options);
  if (options.cache) checkCacheKey(options.cache.key);
  const program = parseMil(readMilText(dir));
  const files = new BlobFiles(dir);
  try {
    const fuse = options.fuse ?? true;
    const translation = translate(program, files, fuse);
    const ort = await import('onnxruntime-node');
    if (weightBytes(translation) < (options.fileBytes ?? FILE_BYTES)) {
      const session = await createSession(ort, inlineModel(translation), settings);
      return new OrtModel(translation, ort, session, undefined);
    }
    const cache = fuse ? (options.cache ?? null) : null;
    const { session, temporary } = await createMapped(ort, dir, translation, cache, mapped(settings));
    return new OrtModel(translation, ort, session, temporary);
  } finally {
    files.close();
  }
}

/**
 * Loads a `.mlmodelc` whose program consists of known operations, on any system. Both dialects of MIL text are read.
 *
 * @throws MilError `MIL_MISSING`, `MIL_SYNTAX`, `MIL_BLOB`, `MIL_SHAPE`, `MIL_UNSUPPORTED` for the model; `MIL_INPUT`
 *   for an option; `MIL_RUN` when ONNX Runtime refuses it or no disk has room for its weights.
 */
export async function openMlmodelc(dir: string, options: MlmodelcOptions = {}): Promise<PortableModel> {
  return loadMlmodelc(dir, options);
}
