import { fromPlain, type JsonObject, type JsonValue } from '../schemas/json.js';
import { type Answers, answersToJson, formatAnswers } from './answers.js';
import { type MinConfidence, parseMinConfidence } from './confidence-gate.js';
import { BackendUnavailableError } from './errors.js';
import { executePlan, warmUp } from './execute.js';
import { describe, milliseconds, type RuntimeInfo } from './info.js';
import { type OpenModel, type OpenOptions, openModel } from './open.js';
import { type Plan, planRequest } from './plan.js';
import { type Prepared, prepare } from './prompt.js';
import { parseQuestions } from './questions.js';
import type { LayaRouter } from './router.js';
import type { Shortlisted, ShortlistOptions } from './shortlist.js';
import type { AnswersOf, Checked } from './typed.js';
import { type Usage, usageOf, usageToJson } from './usage.js';

/** A request: the text (or conversation, or object) and the questions about it, as values or as parsed JSON. */
export interface Request<Q = unknown> {
  readonly context: unknown;
  readonly questions: Q;
  /**
   * Least confidence of an answer: a number within [0, 1], or an object of option bucket ("choice:3-5", "default") to
   * such numbers. With it every answer tells whether it abstains. `min_confidence` is the same in the wire's spelling.
   */
  readonly minConfidence?: unknown;
  readonly min_confidence?: unknown;
}

/** The answers to one request. */
export interface Result<A = Answers> {
  readonly model: string;
  readonly answers: A;
  readonly usage: Usage;
  readonly runtime: RuntimeInfo;
  /** The whole result in the order the request wrote its questions and labels, ready for `stringifyJson`. */
  toJson(): JsonObject;
}

/** What one request took, in milliseconds, told when it ended; `error` is the code or name of what it ended with. */
export interface RequestTrace {
  readonly model: string;
  readonly question_count: number;
  readonly input_tokens: number;
  readonly graph: Plan['graph'] | null;
  readonly buckets: readonly number[];
  readonly routing_reason: string | null;
  readonly prepare_ms: number;
  readonly queue_wait_ms: number;
  readonly run_ms: number;
  readonly latency_ms: number;
  readonly error: string | null;
}

export interface PredictOptions {
  /** Takes a waiting request out of the queue, and ends a running one between two rows or batches. */
  readonly signal?: AbortSignal;
  /** Called once when the request has ended, however it did. It must not throw. */
  readonly onTrace?: (trace: RequestTrace) => void;
}

/** What `Laya.open('auto')` gives. */
export type AutoLaya = LayaRouter<Request, Result, [options?: PredictOptions]>;

/** A request on its way: what is known of it so far. */
interface Progress {
  prepared?: Prepared;
  plan?: Plan;
  readonly started: number;
  preparedAt: number;
  wait: number;
  run: number;
}

/**
 * A Laya model ready to answer.
 *
 *     await using laya = await Laya.open('laya-tiny');
 *     const { answers } = await laya.predict({
 *       context: 'I was charged twice.',
 *       questions: { topic: { type: 'choice', instructions: 'What is it about?', criteria: ['billing', 'other'] } },
 *     });
 *     answers.topic.choice; // 'billing' | 'other'
 *
 * Requests may be made at once: they are prepared side by side and run one after the other.
 */
export class Laya {
  readonly #model: OpenModel;
  #closing: Promise<void> | undefined;

  private constructor(model: OpenModel) {
    this.#model = model;
  }

  /** Opens `laya` and `laya-multilingual`, of which the language of each request's state chooses one. */
  static open(model: 'auto', options?: OpenOptions): Promise<AutoLaya>;
  /** Opens a model by name. Throws UnsupportedModelError, BackendUnavailableError, Artifact*Error, CheckpointError. */
  static open(model: string, options?: OpenOptions): Promise<Laya>;
  static async open(model: string, options: OpenOptions = {}): Promise<Laya | AutoLaya> {
    if (model !== 'auto') return new Laya(await openModel(model, options));
    const { LayaRouter } = await import('./router.js');
    return LayaRouter.open((name, each) => Laya.open(name as string, each), options);
  }

  /** Requests that wait or run. */
  get pending(): number {
    return this.#model.queue.length;
  }

  /** Loads, verifies and runs once everything that may answer. Throws what `predict` throws for these. */
  async warmUp(): Promise<void> {
    this.#requireOpen();
    await this.#model.queue.run(() => warmUp(this.#model));
  }

  /**
   * Answers every question of the request. Throws InvalidRequestError for a malformed request, UnsupportedShapeError for
   * a row that nothing registered holds (nothing is cut or sent elsewhere to make it fit), BackendUnavailableError
   * QUEUE_FULL or CLOSED, and the signal's reason.
   */
  async predict<const Q>(
    request: Request<Q> & { readonly questions: Checked<Q> },
    options: PredictOptions = {},
  ): Promise<Result<AnswersOf<Q>>> {
    const started = performance.now();
    const progress: Progress = { started, preparedAt: started, wait: 0, run: 0 };
    let failure: unknown;
    try {
      return (await this.#answer(request, options.signal, progress)) as Result<AnswersOf<Q>>;
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      options.onTrace?.(traceOf(this.#model, progress, failure));
    }
  }

  async #answer(request: Request, signal: AbortSignal | undefined, progress: Progress): Promise<Result> {
    this.#requireOpen();
    signal?.throwIfAborted();
    const model = this.#model;
    const minConfidence = parseMinConfidence(request.minConfidence ?? request.min_confidence);
    const questions = parseQuestions(fromPlain(request.questions));
    const prepared = await prepare(model.tokenizer, model.checkpoint.agent, fromPlain(request.context), questions);
    const plan = planRequest(prepared.rows, model);
    Object.assign(progress, { prepared, plan, preparedAt: performance.now() });
    if (plan.graph === 'none') return resultOf(model, progress, [], minConfidence);
    const { value: outputs } = await model.queue.run(async () => {
      const began = performance.now();
      progress.wait = began - progress.preparedAt;
      const found = await executePlan(model, plan, prepared.rows, signal);
      progress.run = performance.now() - began;
      return found;
    }, signal);
    return resultOf(model, progress, outputs, minConfidence);
  }

  /**
   * `predict` with every choice question of more than `k` labels cut to the `k` that `embed` finds most similar to the
   * state. Throws ShortlistError, and what `predict` throws.
   */
  async predictShortlist(
    request: Request,
    options: ShortlistOptions,
    predictOptions: PredictOptions = {},
  ): Promise<Shortlisted<Result>> {
    const { predictShortlist } = await import('./shortlist.js');
    return predictShortlist<Request, Result, [PredictOptions]>(this, request, options, predictOptions);
  }

  #requireOpen(): void {
    if (this.#closing === undefined) return;
    throw new BackendUnavailableError('CLOSED', 'the model was closed', { hint: 'open it again' });
  }

  /** Takes no more requests, finishes those it has, and releases the model's memory. May be called again. */
  close(): Promise<void> {
    this.#closing ??= this.#model.close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function resultOf(
  model: OpenModel,
  progress: Progress,
  outputs: Parameters<typeof formatAnswers>[1],
  minConfidence: MinConfidence | undefined,
): Result {
  const { prepared, plan, started, wait } = progress as Progress & { prepared: Prepared; plan: Plan };
  const answers = formatAnswers(prepared.questions, outputs, model.calibration, minConfidence);
  const usage = usageOf(prepared);
  const runtime = describe(model, prepared, plan, { latency: performance.now() - started, wait });
  const toJson = (): JsonObject =>
    new Map<string, JsonValue>([
      ['model', runtime.model],
      ['answers', answersToJson(prepared.questions, answers)],
      ['usage', usageToJson(prepared, usage)],
      ['runtime', fromPlain(runtime)],
    ]);
  return { model: runtime.model, answers, usage, runtime, toJson };
}

function traceOf(model: OpenModel, progress: Progress, failure: unknown): RequestTrace {
  const { prepared, plan, started, preparedAt, wait, run } = progress;
  const { code, name } = (failure ?? {}) as { code?: unknown; name?: unknown };
  const described = typeof code === 'string' ? code : typeof name === 'string' ? name : 'unknown';
  return {
    model: model.spec.name,
    question_count: prepared?.rows.length ?? 0,
    input_tokens: prepared?.inputTokens ?? 0,
    graph: plan?.graph ?? null,
    buckets: plan?.buckets ?? [],
    routing_reason: plan?.reason ?? null,
    prepare_ms: milliseconds(preparedAt - started),
    queue_wait_ms: milliseconds(wait),
    run_ms: milliseconds(run),
    latency_ms: milliseconds(performance.now() - started),
    error: failure === undefined ? null : described,
  };
}
