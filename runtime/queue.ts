import { BackendUnavailableError } from './errors.js';

/** What work gave, and how long it waited before it began, in milliseconds. */
export interface Queued<T> {
  readonly value: T;
  readonly waitMs: number;
}

interface Entry {
  start(): void;
  cancel(error: unknown): void;
}

/** Of the newest measurement in the mean. */
const NEW_SHARE = 0.2;

/** Work of one device: one piece at a time, in order of arrival, and no more than a bounded number waiting. */
export class DeviceQueue {
  readonly #limit: number;
  #size = 0;
  /** Mean milliseconds a unit of size; null before the first measurement. */
  #rate: number | null = null;
  readonly #waiting = new Set<Entry>();
  #running = 0;
  #closed = false;
  #idle: (() => void)[] = [];

  /** `limit`: pieces of work that may wait while one runs. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Pieces of work that wait or run. */
  get length(): number {
    return this.#waiting.size + this.#running;
  }

  /** Expected milliseconds until everything that waits or runs is done; 0 before anything was measured. */
  get backlogMs(): number {
    return this.#size * (this.#rate ?? 0);
  }

  /** Expected milliseconds of work of a size; null before anything was measured. */
  estimate(size: number): number | null {
    return this.#rate === null ? null : size * this.#rate;
  }

  /**
   * Runs the work when its turn comes. `size` is for the estimates, in any unit; work of size 0 is not measured. An aborted signal takes waiting work out of the queue; work that runs has to
   * look at the signal itself.
   *
   * @throws BackendUnavailableError QUEUE_FULL at once when too many wait, CLOSED after `close`; the signal's reason
   */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal, size = 0): Promise<Queued<T>> {
    signal?.throwIfAborted();
    if (this.#closed) throw closed();
    if (this.#running > 0 && this.#waiting.size >= this.#limit)
      throw new BackendUnavailableError('QUEUE_FULL', `${this.#waiting.size} requests wait already`, {
        expected: `at most ${this.#limit} waiting`,
        found: this.#waiting.size + 1,
        hint: 'ask again later, or open the model with a larger queueLimit',
      });
    const arrived = performance.now();
    this.#size += size;
    try {
      if (this.#running > 0) await this.#turn(signal);
      else this.#running = 1;
    } catch (error) {
      this.#size -= size;
      throw error;
    }
    const began = performance.now();
    try {
      const value = await work();
      if (size > 0) this.#measured((performance.now() - began) / size);
      return { value, waitMs: began - arrived };
    } finally {
      this.#size -= size;
      this.#next();
    }
  }

  #measured(rate: number): void {
    this.#rate = this.#rate === null ? rate : this.#rate + (rate - this.#rate) * NEW_SHARE;
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = (): void => entry.cancel(signal?.reason);
      const leave = (): void => {
        this.#waiting.delete(entry);
        signal?.removeEventListener('abort', abort);
      };
      const entry: Entry = {
        start: () => {
          leave();
          resolve();
        },
        cancel: (error) => {
          leave();
          reject(error);
        },
      };
      this.#waiting.add(entry);
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  /** The next one begins without a gap, so that nothing that arrives now can overtake it. */
  #next(): void {
    const [entry] = this.#waiting;
    if (entry) {
      entry.start();
      return;
    }
    this.#running = 0;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Takes no more work, and resolves when all that was taken has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.length === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }
}

const closed = (): BackendUnavailableError =>
  new BackendUnavailableError('CLOSED', 'the model was closed', { hint: 'open it again' });
