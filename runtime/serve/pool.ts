import { HttpError, RefusedError, ServeError } from './errors.js';
import { type AnswerFacts, type Fault, sharedNow, type WorkerOrder } from './protocol.js';
import { type ModelState, type Outcome, Slot, type WorkerEvent } from './slot.js';
import { AUTO_MODELS, type Target } from './target.js';

export interface PoolOptions {
  readonly workers: number;
  readonly order: WorkerOrder;
  /** Jobs that may wait for a worker. */
  readonly queue: number;
  readonly emit: (event: WorkerEvent) => void;
  /** The worker's module; default: the one beside this file. */
  readonly url?: URL;
  readonly restartMs?: number;
}

export interface Question {
  readonly body: string;
  readonly target: Target;
  readonly requestId: string;
}

export interface Answered {
  readonly body: string;
  readonly facts: AnswerFacts;
}

export interface PoolStatus {
  /** Best state of each model over all workers. */
  readonly models: ReadonlyMap<string, ModelState>;
  readonly queued: number;
  readonly running: number;
  readonly workers: number;
  readonly restarts: number;
}

/** What answers requests: the pool, or a stand-in for tests. */
export interface Answerer {
  /** Throws HttpError; an aborted signal takes the request out of the queue (CLIENT_GONE). */
  ask(question: Question, signal: AbortSignal): Promise<Answered>;
  status(): PoolStatus;
}

interface Waiting {
  readonly question: Question;
  readonly since: number;
  readonly resolve: (answered: Answered) => void;
  readonly reject: (error: unknown) => void;
  /** Takes it from the worker that has it. */
  cancel?: () => void;
}

/**
 * Runs inference in worker threads, so that the main thread only speaks HTTP. Jobs start in the order they came; a lost
 * worker fails its own job and is replaced.
 */
export class Pool implements Answerer {
  readonly #slots: readonly Slot[];
  readonly #options: PoolOptions;
  readonly #waiting = new Set<Waiting>();
  #watchers: (() => void)[] = [];
  #jobs = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { order, emit, url = new URL('./worker.js', import.meta.url), restartMs = 200 } = options;
    const slot = { url, order, restartMs, emit, changed: () => this.#dispatch() };
    this.#slots = Array.from({ length: options.workers }, (_, index) => new Slot(index, slot));
  }

  /** Waits until a model can answer. Throws ServeError NO_MODEL when none can in any worker. */
  async ready(): Promise<void> {
    for (;;) {
      const states = [...this.status().models.values()];
      if (this.#slots.some((slot) => slot.open) && states.some(({ status }) => status === 'ready')) return;
      if (this.#slots.every((slot) => slot.tried)) throw noModel(this.status().models);
      await new Promise<void>((resolve) => this.#watchers.push(resolve));
    }
  }

  async ask(question: Question, signal: AbortSignal): Promise<Answered> {
    const refusal = this.#refusal(question.target);
    if (refusal) throw refusal;
    let leave = (): void => undefined;
    try {
      return await new Promise((resolve, reject) => {
        const waiting: Waiting = { question, since: sharedNow(), resolve, reject };
        leave = () => this.#leave(waiting);
        this.#waiting.add(waiting);
        this.#dispatch();
        if (this.#queued > this.#options.queue)
          this.#drop(waiting, new HttpError('BUSY', 'server busy, try again later'));
        if (signal.aborted) leave();
        else signal.addEventListener('abort', leave);
      });
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  status(): PoolStatus {
    const models = new Map(this.#options.order.models.map((model) => [model, this.#stateOf(model)]));
    const restarts = this.#slots.reduce((sum, slot) => sum + slot.restarts, 0);
    const running = this.#slots.filter(({ load }) => load > 0).length;
    return { models, queued: this.#queued, running, workers: this.#slots.length, restarts };
  }

  /** Jobs that no worker is at yet. */
  get #queued(): number {
    return this.#slots.reduce((sum, { load }) => sum + Math.max(0, load - 1), this.#waiting.size);
  }

  /** Ends the workers after the jobs that run and wait. */
  async close(): Promise<void> {
    while (this.#waiting.size > 0 || this.#slots.some(({ load }) => load > 0))
      await new Promise<void>((resolve) => this.#watchers.push(resolve));
    await Promise.all(this.#slots.map((slot) => slot.close()));
  }

  /** Ends the workers now; what waits is refused. */
  async kill(): Promise<void> {
    await Promise.all(this.#slots.map((slot) => slot.kill()));
    this.#dispatch();
  }

  /** Gives waiting jobs to idle workers, and refuses those that no worker will ever take. */
  #dispatch(): void {
    for (const waiting of this.#waiting) {
      const { target } = waiting.question;
      const slot = this.#freest(target);
      if (slot) this.#start(waiting, slot);
      else if (!this.#slots.some((one) => one.alive))
        this.#drop(waiting, new HttpError('STOPPING', 'the server is stopping'));
      else if (!this.#isHopeful(target)) this.#drop(waiting, unavailable(target));
    }
    for (const watcher of this.#watchers.splice(0)) watcher();
  }

  /** The slot with the least to do that can serve the target. */
  #freest(target: Target): Slot | undefined {
    const names = namesOf(target);
    const able = this.#slots.filter((slot) => slot.free && names.some((name) => isReady(slot, name)));
    return able.sort((a, b) => a.load - b.load)[0];
  }

  #start(waiting: Waiting, slot: Slot): void {
    this.#waiting.delete(waiting);
    this.#jobs += 1;
    const id = this.#jobs;
    waiting.cancel = () => slot.cancel(id);
    const { question, since, resolve, reject } = waiting;
    const ended = slot.run({ id, ...question, since }).then((outcome) => {
      if (outcome === null) this.#putBack(waiting);
      else resolve(resultOf(outcome));
    });
    ended.catch(reject).finally(() => {
      for (const watcher of this.#watchers.splice(0)) watcher();
    });
  }

  /** Back to the head of the queue: its worker ended before its turn. */
  #putBack(waiting: Waiting): void {
    const others = [...this.#waiting];
    this.#waiting.clear();
    for (const one of [waiting, ...others]) this.#waiting.add(one);
    this.#dispatch();
  }

  #leave(waiting: Waiting): void {
    this.#waiting.delete(waiting);
    waiting.cancel?.();
    waiting.reject(new HttpError('CLIENT_GONE', 'the client left before its answer'));
  }

  /** Takes a job out of the queue; nothing happens to one that has started. */
  #drop(waiting: Waiting, error: HttpError): void {
    if (this.#waiting.delete(waiting)) waiting.reject(error);
  }

  #stateOf(model: string): ModelState {
    const states = this.#slots.map((slot) => slot.models.get(model)!);
    const first = (status: ModelState['status']) => states.find((state) => state.status === status);
    return first('ready') ?? first('warming') ?? states[0]!;
  }

  #isHopeful(target: Target): boolean {
    return namesOf(target).some((name) => this.#stateOf(name).status !== 'unavailable');
  }

  #refusal(target: Target): HttpError | undefined {
    const states = namesOf(target).map((name) => this.#stateOf(name).status);
    if (states.includes('ready')) return undefined;
    if (states.includes('warming')) return new HttpError('MODEL_WARMING', 'the model is warming up, try again later');
    return unavailable(target);
  }
}

const namesOf = (target: Target): readonly string[] => (target.kind === 'auto' ? AUTO_MODELS : [target.model]);
const isReady = (slot: Slot, model: string): boolean => slot.models.get(model)?.status === 'ready';

function unavailable(target: Target): HttpError {
  const name = target.kind === 'auto' ? 'auto' : target.model;
  return new HttpError('MODEL_UNAVAILABLE', `model ${name} is unavailable on this server`);
}

function noModel(models: ReadonlyMap<string, ModelState>): ServeError {
  const reasons = Array.from(
    models,
    ([name, state]) => `${name}: ${state.status === 'unavailable' ? state.reason : state.status}`,
  );
  return new ServeError('NO_MODEL', 'none of the models can be opened', {
    found: reasons,
    hint: `laya-artifacts build ${[...models.keys()][0]}`,
  });
}

function resultOf(outcome: NonNullable<Outcome>): Answered {
  if ('body' in outcome) return outcome;
  throw errorOf(outcome.fault);
}

function errorOf(fault: Fault): HttpError {
  const { kind, code, message, ...facts } = fault;
  if (kind === 'refused') return new RefusedError(code, message, facts);
  const cause = new ServeError('NO_MODEL', `${code}: ${message}`);
  if (kind === 'unavailable' && code === 'QUEUE_FULL')
    return new HttpError('BUSY', 'server busy, try again later', { cause });
  if (kind === 'unavailable' && code === 'CLOSED')
    return new HttpError('STOPPING', 'the server is stopping', { cause });
  if (kind === 'lost')
    return new HttpError('DEVICE_UNAVAILABLE', 'the device is out of use, try again later', { cause });
  if (kind === 'unavailable')
    return new HttpError('MODEL_UNAVAILABLE', 'the model is unavailable on this server', { cause });
  return new HttpError('INFERENCE_FAILED', 'inference failed', { cause });
}
