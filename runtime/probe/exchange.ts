import { brokenProtocol, ProbeError } from './errors.js';
import { encodeFrame, type Frame, KIND } from './frames.js';
import { hung, type ProbeLink } from './link.js';
import { readError, readJson } from './records.js';
import { addressRequest, type ProbeResult, readResult, type TensorLayout } from './tensors.js';

/** A request to one model: its filled frame, and what to do when the frame's memory is free again. */
export interface Order {
  readonly model: number;
  readonly frame: Buffer;
  readonly freed: () => void;
}

interface Pending extends Order {
  resolve(result: ProbeResult): void;
  reject(reason: unknown): void;
}

export interface ExchangeOptions {
  /** How many requests the probe takes at once. */
  readonly inFlight: number;
  /** How many more wait here. */
  readonly queue: number;
  /** Milliseconds without any answer after which a probe that owes one is killed. */
  readonly patience: number;
  /** Of each model. */
  readonly outputs: readonly TensorLayout[];
}

/** Requests and answers over a link whose models are ready. */
export class Exchange {
  readonly #link: ProbeLink;
  readonly #options: ExchangeOptions;
  readonly #inFlight = new Map<number, Pending>();
  readonly #waiting: Pending[] = [];
  readonly #idle: (() => void)[] = [];
  #nextId = 1;
  #watch: NodeJS.Timeout | undefined;
  #end: ProbeError | undefined;

  constructor(link: ProbeLink, options: ExchangeOptions) {
    this.#link = link;
    this.#options = options;
    link.consume((frame) => this.#answer(frame));
    void link.ended.then((reason) => this.#stop(reason ?? closed(null)));
  }

  /**
   * Throws ProbeError PROBE_BUSY, PROBE_CLOSED, PROBE_CRASHED, PROBE_HUNG, PROBE_PROTOCOL, what the probe reports, and
   * the signal's reason.
   */
  request(order: Order, signal?: AbortSignal): Promise<ProbeResult> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      if (this.#end) throw closed(this.#end);
      if (this.#waiting.length >= this.#options.queue && this.#inFlight.size >= this.#options.inFlight) {
        throw busy(this.#options.queue);
      }
      const onAbort = (): void => this.#abandon(pending, signal?.reason);
      const settle =
        <T>(step: (value: T) => void) =>
        (value: T): void => {
          signal?.removeEventListener('abort', onAbort);
          step(value);
        };
      const pending: Pending = { ...order, resolve: settle(resolve), reject: settle(reject) };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push(pending);
      this.#pump();
    });
  }

  /** Takes no more and refuses what waits; resolves when what is under way was answered. */
  close(): Promise<void> {
    this.#end ??= closed(null);
    for (const pending of this.#waiting.splice(0)) this.#refuse(pending, this.#end);
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.#checkIdle();
    });
  }

  #checkIdle(): void {
    if (this.#inFlight.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #pump(): void {
    while (this.#inFlight.size < this.#options.inFlight) {
      const pending = this.#waiting.shift();
      if (!pending) return;
      const id = this.#freeId();
      this.#inFlight.set(id, pending);
      this.#watch ??= setTimeout(() => this.#link.fail(hung('answer', this.#options.patience)), this.#options.patience);
      addressRequest(pending.frame, id);
      this.#link.send(pending.frame, pending.freed);
    }
  }

  #freeId(): number {
    while (this.#inFlight.has(this.#nextId)) this.#nextId = (this.#nextId % 0xffffffff) + 1;
    const id = this.#nextId;
    this.#nextId = (id % 0xffffffff) + 1;
    return id;
  }

  #answer(frame: Frame): void {
    try {
      this.#settle(frame);
    } catch (error) {
      if (!(error instanceof ProbeError)) throw error;
      this.#link.fail(error);
    }
  }

  #settle({ kind, id, payload }: Frame): void {
    const isError = kind === KIND.error;
    if (isError && id === 0) throw readError(readJson(payload, 'ERROR'));
    const pending = this.#inFlight.get(id);
    if (!pending || !(isError || kind === KIND.result)) {
      throw brokenProtocol('an answer', 'RESULT or ERROR of a request under way', `kind ${kind} of request ${id}`);
    }
    const { model } = pending;
    const reported = isError ? readError(readJson(payload, 'ERROR')) : undefined;
    const result = reported ? undefined : readResult(payload, model, this.#options.outputs[model]!);
    this.#inFlight.delete(id);
    this.#rewatch();
    if (result) pending.resolve(result);
    else pending.reject(reported);
    this.#pump();
    this.#checkIdle();
  }

  /** Patience starts again with every answer and ends when none is owed. */
  #rewatch(): void {
    if (this.#inFlight.size > 0) this.#watch?.refresh();
    else {
      clearTimeout(this.#watch);
      this.#watch = undefined;
    }
  }

  /** Nobody waits for this answer any more; a request that was sent keeps its place until the probe answers. */
  #abandon(pending: Pending, reason: unknown): void {
    const index = this.#waiting.indexOf(pending);
    if (index >= 0) {
      this.#waiting.splice(index, 1);
      this.#refuse(pending, reason);
      return;
    }
    for (const [id, one] of this.#inFlight) if (one === pending) this.#link.send(encodeFrame(KIND.cancel, id));
    pending.reject(reason);
  }

  #refuse(pending: Pending, reason: unknown): void {
    pending.freed();
    pending.reject(reason);
  }

  #stop(reason: ProbeError): void {
    clearTimeout(this.#watch);
    this.#end = reason;
    for (const pending of this.#inFlight.values()) pending.reject(reason);
    this.#inFlight.clear();
    this.#checkIdle();
    for (const pending of this.#waiting.splice(0)) this.#refuse(pending, reason);
  }
}

function closed(cause: ProbeError | null): ProbeError {
  return new ProbeError('PROBE_CLOSED', 'this laya-probe does not run any more', {
    expected: 'a probe that runs',
    found: cause?.code ?? 'closed',
    hint: 'open the models again',
    ...(cause ? { cause } : {}),
  });
}

function busy(queue: number): ProbeError {
  return new ProbeError('PROBE_BUSY', `${queue} requests wait for laya-probe already`, {
    expected: `at most ${queue} waiting requests`,
    found: queue + 1,
    hint: 'send fewer requests at once',
  });
}
