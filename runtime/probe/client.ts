import type { Executable } from '../executor.js';
import { brokenProtocol, ProbeError } from './errors.js';
import { Exchange } from './exchange.js';
import { type Frame, KIND } from './frames.js';
import { ProbeLink } from './link.js';
import type { ProbeProgram } from './process.js';
import {
  type ComputeUnits,
  type CoreMlKind,
  type Hello,
  PROTOCOL,
  type ReadyModel,
  readError,
  readHello,
  readJson,
  readReady,
} from './records.js';
import {
  fillRequest,
  layoutOf,
  type ProbeInput,
  type ProbeResult,
  type ProbeTensor,
  requestFrame,
  type TensorLayout,
} from './tensors.js';

/** Milliseconds after which a probe that does not go on is killed. */
export interface ProbePatience {
  /** From the start to HELLO; default 30 s. */
  readonly hello: number;
  /** From HELLO to READY: the Neural Engine's own compilation can take minutes; default 900 s. */
  readonly load: number;
  /** From one answer to the next, while one is owed; default 60 s. */
  readonly answer: number;
  /** From the end of its input to its own; default 10 s. */
  readonly close: number;
}

export interface ProbeOptions extends ProbeProgram {
  /** Compiled models, in the order in which they are asked for. */
  readonly models: readonly string[];
  /** Default `cpuAndNeuralEngine`. */
  readonly units?: ComputeUnits;
  /** What may compute; default `apple` only. */
  readonly accept?: readonly CoreMlKind[];
  readonly patience?: Partial<ProbePatience>;
  /** Requests that may wait here beyond those the probe takes at once; default 64. */
  readonly queue?: number;
  /** Ends the probe while it is being opened. */
  readonly signal?: AbortSignal;
}

const PATIENCE: ProbePatience = { hello: 30_000, load: 900_000, answer: 60_000, close: 10_000 };

/** A running laya-probe with its models loaded (docs/probe-protocol.md §4, §5). */
export class Probe {
  readonly hello: Hello;
  readonly models: readonly ProbeModel[];
  /** Resolves when the process is gone: null after `close`, else the reason. Never rejects. */
  readonly ended: Promise<ProbeError | null>;
  readonly #link: ProbeLink;
  readonly #exchange: Exchange;
  readonly #closePatience: number;
  #open: number;

  constructor(link: ProbeLink, hello: Hello, loaded: readonly Loaded[], options: ProbeOptions) {
    const patience = { ...PATIENCE, ...options.patience };
    this.hello = hello;
    this.ended = link.ended;
    this.#link = link;
    this.#closePatience = patience.close;
    this.#open = loaded.length;
    this.#exchange = new Exchange(link, {
      inFlight: hello.limits.queue,
      queue: options.queue ?? 64,
      patience: patience.answer,
      outputs: loaded.map(({ outputs }) => outputs),
    });
    const released = (): Promise<void> => this.#released();
    this.models = loaded.map((one, index) => new ProbeModel(one, index, this.#exchange, released));
  }

  /** Of the process. */
  get pid(): number | undefined {
    return this.#link.pid;
  }

  /** Answers what is under way and ends the process; may be called again. A crash is not an error here. */
  async close(): Promise<void> {
    await this.#exchange.close();
    await this.#link.close(this.#closePatience);
  }

  async #released(): Promise<void> {
    this.#open -= 1;
    if (this.#open === 0) await this.close();
  }
}

interface Loaded {
  readonly model: ReadyModel;
  readonly inputs: TensorLayout;
  readonly outputs: TensorLayout;
}

/** One model of a probe. Releasing the last one ends the process. */
export class ProbeModel implements Executable {
  readonly path: string;
  readonly inputs: readonly ProbeTensor[];
  readonly outputs: readonly ProbeTensor[];
  readonly #index: number;
  readonly #layout: TensorLayout;
  readonly #exchange: Exchange;
  readonly #onRelease: () => Promise<void>;
  readonly #frames: Buffer[] = [];
  #released: Promise<void> | undefined;

  constructor(loaded: Loaded, index: number, exchange: Exchange, onRelease: () => Promise<void>) {
    this.path = loaded.model.path;
    this.inputs = loaded.model.inputs;
    this.outputs = loaded.model.outputs;
    this.#index = index;
    this.#layout = loaded.inputs;
    this.#exchange = exchange;
    this.#onRelease = onRelease;
  }

  /** Row-major elements, rounded to FP16, or FP16 bits. Throws ProbeError (`Exchange.request`, and PROBE_INPUT). */
  async run(inputs: Record<string, ProbeInput>, signal?: AbortSignal): Promise<Record<string, Float32Array>> {
    return (await this.predict(inputs, signal)).outputs;
  }

  /** The same, with the times that the probe measured. */
  async predict(inputs: Record<string, ProbeInput>, signal?: AbortSignal): Promise<ProbeResult> {
    if (this.#released) throw new ProbeError('PROBE_CLOSED', 'the model was released', { hint: 'open it again' });
    const frame = this.#frames.pop() ?? requestFrame(this.#index, this.#layout);
    const freed = (): void => void this.#frames.push(frame);
    try {
      fillRequest(frame, this.#layout, inputs);
    } catch (error) {
      freed();
      throw error;
    }
    return this.#exchange.request({ model: this.#index, frame, freed }, signal);
  }

  release(): Promise<void> {
    this.#released ??= this.#onRelease();
    return this.#released;
  }
}

/**
 * Starts laya-probe and loads models; it is ready when this resolves (fault S18). Throws ProbeError: how the process
 * fared, or `MODEL_*` when Core ML refused a model. Nothing is left running then.
 */
export async function openProbe(options: ProbeOptions): Promise<Probe> {
  options.signal?.throwIfAborted();
  const units = options.units ?? 'cpuAndNeuralEngine';
  const args = ['serve', '--units', units, '--protocol', `${PROTOCOL}`, '--', ...options.models];
  const link = await ProbeLink.start(options, args);
  const onAbort = (): void => link.fail(new ProbeError('PROBE_CLOSED', 'stopped while it was opened'));
  options.signal?.addEventListener('abort', onAbort, { once: true });
  if (options.signal?.aborted) onAbort();
  try {
    return await handshake(link, units, options);
  } catch (error) {
    link.fail(error instanceof ProbeError ? error : brokenProtocol('the handshake', 'HELLO and READY', error));
    await link.ended;
    options.signal?.throwIfAborted();
    throw error;
  } finally {
    options.signal?.removeEventListener('abort', onAbort);
  }
}

async function handshake(link: ProbeLink, units: ComputeUnits, options: ProbeOptions): Promise<Probe> {
  const patience = { ...PATIENCE, ...options.patience };
  const first = expectKind(await link.receive(patience.hello, 'HELLO'), KIND.hello, 'HELLO');
  const hello = readHello(first.payload, units, options.accept ?? ['apple']);
  const second = expectKind(await link.receive(patience.load, 'READY'), KIND.ready, 'READY');
  const loaded = readReady(second.payload, options.models).map((model) => ({
    model,
    inputs: layout(model.inputs, hello),
    outputs: layout(model.outputs, hello),
  }));
  link.reader.resultBytes = Math.max(0, ...loaded.map(({ outputs }) => outputs.length));
  return new Probe(link, hello, loaded, options);
}

function expectKind(frame: Frame, kind: number, name: string): Frame {
  if (frame.kind === KIND.error && frame.id === 0) throw readError(readJson(frame.payload, 'ERROR'));
  if (frame.kind === kind && frame.id === 0) return frame;
  throw brokenProtocol('the handshake', name, `kind ${frame.kind} of request ${frame.id}`);
}

function layout(specs: readonly ProbeTensor[], { limits }: Hello): TensorLayout {
  const made = layoutOf(specs, limits.frame);
  if (!made) throw brokenProtocol('READY', `tensors of at most ${limits.frame} bytes`, 'more');
  return made;
}
