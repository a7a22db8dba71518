import { Worker } from 'node:worker_threads';
import { HttpError } from './errors.js';
import type { AnswerFacts, Fault, FromWorker, Job, Placement, ToWorker, WorkerOrder } from './protocol.js';

/** What a model is in one worker. */
export type ModelState =
  | { readonly status: 'warming' }
  | ({ readonly status: 'ready' } & Placement)
  | { readonly status: 'unavailable'; readonly reason: string };

export type WorkerEvent =
  | { readonly kind: 'model_ready'; readonly worker: number; readonly model: string; readonly placement: Placement }
  | { readonly kind: 'model_unavailable'; readonly worker: number; readonly model: string; readonly fault: Fault }
  | { readonly kind: 'worker_lost'; readonly worker: number; readonly error: string; readonly restart_ms: number };

/** A job's result, as a worker gave it. */
export type Outcome = { readonly body: string; readonly facts: AnswerFacts } | { readonly fault: Fault };

export interface SlotOptions {
  readonly url: URL;
  readonly order: WorkerOrder;
  /** First wait before a lost worker is started again, in milliseconds; doubled for each loss without an answer. */
  readonly restartMs: number;
  readonly emit: (event: WorkerEvent) => void;
  /** The slot may take a job, or will never. */
  readonly changed: () => void;
}

interface Running {
  readonly id: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: Error) => void;
}

const LONGEST_WAIT_MS = 30_000;

/** One place of the pool: a worker, and after its loss the next one. It runs one job at a time. */
export class Slot {
  readonly models = new Map<string, ModelState>();
  readonly #number: number;
  readonly #options: SlotOptions;
  #worker: Worker | undefined;
  #running: Running | undefined;
  #timer: NodeJS.Timeout | undefined;
  #losses = 0;
  #restarts = 0;
  #closing = false;
  #opened = false;
  /** True once every model was tried, or two workers were lost before that. */
  #tried = false;

  constructor(number: number, options: SlotOptions) {
    this.#number = number;
    this.#options = options;
    this.#start();
  }

  get idle(): boolean {
    return this.#opened && this.#running === undefined && !this.#closing;
  }

  get tried(): boolean {
    return this.#tried;
  }

  /** True while there is a worker, or the next one is on its way. */
  get alive(): boolean {
    return this.#worker !== undefined || !this.#closing;
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** Runs a job; the slot must be idle. Throws HttpError WORKER_LOST when the worker ends before it answered. */
  run(job: Job): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#running = { id: job.id, resolve, reject };
      this.#tell({ kind: 'job', job });
    });
  }

  /** Ends the job that runs as soon as the worker can. */
  cancel(): void {
    if (this.#running) this.#tell({ kind: 'cancel', id: this.#running.id });
  }

  /** Ends the worker now, whatever it does. */
  async kill(): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#timer);
    await this.#worker?.terminate();
  }

  /** Ends the worker after its job. */
  async close(): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#timer);
    const worker = this.#worker;
    if (worker === undefined) return;
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    this.#tell({ kind: 'close' });
    await ended;
  }

  #start(): void {
    const { url, order } = this.#options;
    if (!this.#tried) for (const model of order.models) this.models.set(model, { status: 'warming' });
    const worker = new Worker(url, { workerData: order, name: `laya-${this.#number}` });
    let error: unknown;
    worker.on('message', (message: FromWorker) => this.#receive(message));
    worker.on('error', (cause) => {
      error = cause;
    });
    worker.on('exit', (code) => this.#lost(error ?? new Error(`the worker ended with ${code}`)));
    this.#worker = worker;
  }

  #tell(message: ToWorker): void {
    this.#worker?.postMessage(message);
  }

  #receive(message: FromWorker): void {
    const { emit, changed } = this.#options;
    const worker = this.#number;
    if (message.kind === 'ready') {
      const { model, placement } = message;
      this.models.set(model, { status: 'ready', ...placement });
      emit({ kind: 'model_ready', worker, model, placement });
    } else if (message.kind === 'unavailable') {
      const { model, fault } = message;
      this.models.set(model, { status: 'unavailable', reason: fault.code });
      emit({ kind: 'model_unavailable', worker, model, fault });
    } else if (message.kind === 'opened') {
      this.#opened = true;
      this.#tried = true;
      changed();
    } else this.#settle(message);
  }

  #settle(message: Extract<FromWorker, { readonly id: number }>): void {
    const running = this.#running;
    if (running?.id !== message.id) return;
    this.#running = undefined;
    this.#losses = 0;
    running.resolve(message.kind === 'answer' ? message : { fault: message.fault });
    this.#options.changed();
  }

  /** The worker is gone: its job fails now, and another worker takes the place after a while. */
  #lost(error: unknown): void {
    const running = this.#running;
    this.#worker = undefined;
    this.#running = undefined;
    this.#opened = false;
    if (this.#closing && running === undefined) {
      this.#options.changed();
      return;
    }
    const { order, restartMs, emit } = this.#options;
    const restart_ms = Math.min(restartMs * 2 ** this.#losses, LONGEST_WAIT_MS);
    if (this.#losses > 0) {
      this.#tried = true;
      for (const model of order.models) this.models.set(model, { status: 'unavailable', reason: 'WORKER_LOST' });
    } else for (const model of order.models) this.models.set(model, { status: 'warming' });
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    emit({ kind: 'worker_lost', worker: this.#number, error: text, restart_ms });
    running?.reject(
      new HttpError('WORKER_LOST', 'the worker that ran this request ended; try again', { cause: error }),
    );
    if (!this.#closing) this.#restart(restart_ms);
    this.#options.changed();
  }

  #restart(wait: number): void {
    this.#losses += 1;
    this.#timer = setTimeout(() => {
      this.#restarts += 1;
      this.#start();
    }, wait);
  }
}
