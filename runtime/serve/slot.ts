import { Worker } from 'node:worker_threads';
import { HttpError } from './errors.js';
import type { AneHealth, AnswerFacts, Fault, FromWorker, Job, Placement, ToWorker, WorkerOrder } from './protocol.js';

/** What a model is in one worker. */
export type ModelState =
  | { readonly status: 'warming' }
  | ({ readonly status: 'ready' } & Placement)
  | { readonly status: 'unavailable'; readonly reason: string };

export type WorkerEvent =
  | { readonly kind: 'model_ready'; readonly worker: number; readonly model: string; readonly placement: Placement }
  | { readonly kind: 'ane_changed'; readonly worker: number; readonly model: string; readonly ane: AneHealth }
  | { readonly kind: 'processes'; readonly worker: number; readonly pids: readonly number[] }
  | { readonly kind: 'model_unavailable'; readonly worker: number; readonly model: string; readonly fault: Fault }
  | { readonly kind: 'worker_lost'; readonly worker: number; readonly error: string; readonly restart_ms: number };

/** A job's result as a worker gave it, or null for a job whose worker ended before its turn. */
export type Outcome = { readonly body: string; readonly facts: AnswerFacts } | { readonly fault: Fault } | null;

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

/** Jobs a worker holds: one at work, and the next one at hand, so that it never waits for the main thread. */
const DEPTH = 2;
/** The same where the Neural Engine works beside the cpu. */
const ANE_DEPTH = 8;

/** One place of the pool: a worker, and after its loss the next one. It runs its jobs one after the other. */
export class Slot {
  readonly models = new Map<string, ModelState>();
  readonly #number: number;
  readonly #options: SlotOptions;
  #worker: Worker | undefined;
  #pids: readonly number[] = [];
  #jobs: Running[] = [];
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

  /** True when it takes jobs, now or after those it has. */
  get open(): boolean {
    return this.#opened && !this.#closing;
  }

  get free(): boolean {
    const hasAne = Array.from(this.models.values()).some((state) => 'ane' in state && state.ane.status === 'ready');
    return this.open && this.#jobs.length < (hasAne ? ANE_DEPTH : DEPTH);
  }

  /** Jobs it holds. */
  get load(): number {
    return this.#jobs.length;
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

  /** Runs a job after those it has; the slot must be free. Throws HttpError WORKER_LOST when the worker ends meanwhile. */
  run(job: Job): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#jobs.push({ id: job.id, resolve, reject });
      this.#tell({ kind: 'job', job });
    });
  }

  /** Ends a job as soon as the worker can. */
  cancel(id: number): void {
    this.#tell({ kind: 'cancel', id });
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
    } else if (message.kind === 'ane') {
      const state = this.models.get(message.model);
      if (state?.status === 'ready') this.models.set(message.model, { ...state, ane: message.ane });
      emit({ kind: 'ane_changed', worker, model: message.model, ane: message.ane });
    } else if (message.kind === 'processes') {
      this.#pids = message.pids;
      emit({ kind: 'processes', worker, pids: message.pids });
    } else if (message.kind === 'opened') {
      this.#opened = true;
      this.#tried = true;
      changed();
    } else this.#settle(message);
  }

  #settle(message: Extract<FromWorker, { readonly id: number }>): void {
    const index = this.#jobs.findIndex(({ id }) => id === message.id);
    const [job] = index < 0 ? [] : this.#jobs.splice(index, 1);
    this.#losses = 0;
    job?.resolve(message.kind === 'answer' ? message : { fault: message.fault });
    this.#options.changed();
  }

  /** The worker is gone: the job at work fails now, and another worker takes the place after a while. */
  #lost(error: unknown): void {
    const [running, ...others] = this.#jobs;
    endAll(this.#pids);
    this.#pids = [];
    this.#worker = undefined;
    this.#jobs = [];
    this.#opened = false;
    if (!this.#closing || running !== undefined) this.#reportLoss(error);
    running?.reject(
      new HttpError('WORKER_LOST', 'the worker that ran this request ended; try again', { cause: error }),
    );
    for (const job of others) job.resolve(null);
    this.#options.changed();
  }

  #reportLoss(error: unknown): void {
    const { order, restartMs, emit } = this.#options;
    const restart_ms = Math.min(restartMs * 2 ** this.#losses, LONGEST_WAIT_MS);
    if (this.#losses > 0) this.#tried = true;
    const state: ModelState =
      this.#losses > 0 ? { status: 'unavailable', reason: 'WORKER_LOST' } : { status: 'warming' };
    for (const model of order.models) this.models.set(model, state);
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    emit({ kind: 'worker_lost', worker: this.#number, error: text, restart_ms });
    if (!this.#closing) this.#restart(restart_ms);
  }

  #restart(wait: number): void {
    this.#losses += 1;
    this.#timer = setTimeout(() => {
      this.#restarts += 1;
      this.#start();
    }, wait);
  }
}

/** A worker that was cut could not end its processes, and one of them may hang. */
function endAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has gone by itself.
    }
  }
}
