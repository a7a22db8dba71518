import type { Context } from './events.js';

/** Runs stages, names them after their function, times them and reports them. */
export class Stopwatch {
  readonly #context: Context;
  readonly #started = performance.now();
  readonly #seconds = new Map<string, number>();
  #bucket: number | undefined;
  #own = 0;
  /** Name of the stage that runs, or ran last. */
  running: string | undefined;

  constructor(context: Context) {
    this.#context = context;
  }

  async stage<I, O>(work: (input: I, context: Context) => Promise<O>, input: I): Promise<O> {
    const { emit, signal } = this.#context;
    signal.throwIfAborted();
    const about = { stage: work.name, ...(this.#bucket === undefined ? {} : { bucket: this.#bucket }) };
    this.running = work.name;
    emit({ kind: 'stage_started', ...about });
    const started = performance.now();
    const output = await work(input, this.#context);
    const seconds = (performance.now() - started) / 1000;
    this.#seconds.set(work.name, seconds);
    if (this.#bucket !== undefined) this.#own += seconds;
    emit({ kind: 'stage_ended', ...about, seconds });
    return output;
  }

  /** From here on stages belong to this bucket. */
  startBucket(bucket: number): void {
    this.#bucket = bucket;
    this.#own = 0;
  }

  /** Seconds of each stage that ran for the current bucket, or before any bucket, as `<stage>_s`. */
  timings(): Record<string, number> {
    return Object.fromEntries([...this.#seconds].map(([stage, seconds]) => [`${stage}_s`, round(seconds)]));
  }

  bucketSeconds(): number {
    return round(this.#own);
  }

  total(): number {
    return round((performance.now() - this.#started) / 1000);
  }
}

const round = (seconds: number): number => Math.round(seconds * 1000) / 1000;
