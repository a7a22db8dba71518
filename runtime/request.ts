import { fromPlain, type JsonObject, type JsonValue } from '../schemas/json.js';
import type { AneSession } from './ane/session.js';
import { type Answers, answersToJson, formatAnswers } from './answers.js';
import type { MinConfidence } from './confidence-gate.js';
import { type Backlog, describe, milliseconds, type RuntimeInfo } from './info.js';
import type { OpenModel } from './open.js';
import type { Plan } from './plan.js';
import type { Prepared } from './prompt.js';
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
  readonly device: Plan['device'] | null;
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

/** What is decided before a request runs. */
interface Planned {
  prepared: Prepared;
  plan: Plan;
  /** What is to answer on the Neural Engine. */
  session: AneSession | undefined;
  backlog: Backlog;
}

/** A request on its way: what is known of it so far. */
export interface Progress extends Partial<Planned> {
  readonly started: number;
  preparedAt: number;
  wait: number;
  run: number;
}

/** The result of a request that was run. */
export function resultOf(
  model: OpenModel,
  progress: Progress,
  outputs: Parameters<typeof formatAnswers>[1],
  minConfidence: MinConfidence | undefined,
): Result {
  const { prepared, plan, session, backlog, started, wait } = progress as Progress & Planned;
  const answers = formatAnswers(prepared.questions, outputs, model.calibration, minConfidence);
  const usage = usageOf(prepared);
  const course = { plan, session, backlog, wait, latency: performance.now() - started };
  const runtime = describe(model, prepared, course);
  const toJson = (): JsonObject =>
    new Map<string, JsonValue>([
      ['model', runtime.model],
      ['answers', answersToJson(prepared.questions, answers)],
      ['usage', usageToJson(prepared, usage)],
      ['runtime', fromPlain(runtime)],
    ]);
  return { model: runtime.model, answers, usage, runtime, toJson };
}

export function traceOf(model: OpenModel, progress: Progress, failure: unknown): RequestTrace {
  const { prepared, plan, started, preparedAt, wait, run } = progress;
  const { code, name } = (failure ?? {}) as { code?: unknown; name?: unknown };
  const described = typeof code === 'string' ? code : typeof name === 'string' ? name : 'unknown';
  return {
    model: model.spec.name,
    question_count: prepared?.rows.length ?? 0,
    input_tokens: prepared?.inputTokens ?? 0,
    device: plan?.device ?? null,
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
