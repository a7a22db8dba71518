import { GRAPH } from '../registry/models.js';
import { fromPlain, type JsonObject, type JsonValue } from '../schemas/json.js';
import { type Answers, answersToJson, formatAnswers } from './answers.js';
import { bucketFor } from './artifacts.js';
import { parseMinConfidence } from './confidence-gate.js';
import { forwardRow, type RowOutputs } from './forward.js';
import { type OpenModel, type OpenOptions, openModel } from './open.js';
import { type Prepared, prepare } from './prompt.js';
import { parseQuestions } from './questions.js';
import { type Usage, usageOf, usageToJson } from './usage.js';

/** A request: the text (or conversation, or object) and the questions about it, as values or as JSON text. */
export interface Request {
  readonly context: unknown;
  readonly questions: unknown;
  /**
   * Least confidence of an answer: a number within [0, 1], or an object of option bucket ("choice:3-5", "default") to
   * such numbers. With it every answer tells whether it abstains. `min_confidence` is the same in the wire's spelling.
   */
  readonly minConfidence?: unknown;
  readonly min_confidence?: unknown;
}

/** Which artifact answered, where and why. */
export interface RuntimeInfo {
  readonly backend: 'portable' | 'none';
  readonly device: 'cpu' | 'none';
  readonly model: string;
  readonly model_revision: string;
  /** Tokens of the longest row. */
  readonly sequence_length: number;
  readonly question_count: number;
  readonly routing_reason: string;
  /** `L<bucket>:<artifact hash[:12]>` of every artifact used. */
  readonly artifact_revision: string;
  readonly buckets: readonly number[];
  readonly dtype: string;
  readonly truncated: boolean;
  readonly latency_ms: number;
}

/** The answers to one request. */
export interface Result {
  readonly model: string;
  readonly answers: Answers;
  readonly usage: Usage;
  readonly runtime: RuntimeInfo;
  /** The whole result in the order the request wrote its questions and labels, ready for `stringifyJson`. */
  toJson(): JsonObject;
}

/**
 * A Laya model ready to answer.
 *
 *     const laya = await Laya.open('laya-tiny');
 *     const { answers } = await laya.predict({ context: 'I was charged twice.', questions });
 *     await laya.close();
 */
export class Laya {
  readonly #model: OpenModel;

  private constructor(model: OpenModel) {
    this.#model = model;
  }

  /** Opens a model by name. Throws UnsupportedModelError, BackendUnavailableError, Artifact*Error, CheckpointError. */
  static async open(model: string, options: OpenOptions = {}): Promise<Laya> {
    return new Laya(await openModel(model, options));
  }

  /**
   * Answers every question of the request. Throws InvalidRequestError for a malformed request and
   * UnsupportedShapeError for a row that no artifact holds; nothing is cut or sent elsewhere to make it fit.
   */
  async predict(request: Request): Promise<Result> {
    const started = performance.now();
    const model = this.#model;
    const minConfidence = parseMinConfidence(request.minConfidence ?? request.min_confidence);
    const questions = parseQuestions(fromPlain(request.questions));
    const prepared = await prepare(model.tokenizer, model.checkpoint.agent, fromPlain(request.context), questions);
    const buckets = prepared.rows.map((row) => bucketFor(row.ids.length, model.spec, model.artifacts));
    const outputs: RowOutputs[] = [];
    for (const [index, row] of prepared.rows.entries()) {
      const { executable } = await model.load(buckets[index]!);
      const rowModel = { host: model.host, executable, bucket: buckets[index]!, padId: model.tokenizer.pad.id };
      outputs.push(await forwardRow(rowModel, row));
    }
    const answers = formatAnswers(questions, outputs, model.calibration, minConfidence);
    const usage = usageOf(prepared);
    const runtime = describe(model, prepared, buckets, performance.now() - started);
    return {
      model: model.spec.name,
      answers,
      usage,
      runtime,
      toJson: () => toJson(prepared, answers, usage, runtime),
    };
  }

  /** Releases the model's memory. */
  async close(): Promise<void> {
    await this.#model.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function describe(model: OpenModel, { rows }: Prepared, buckets: readonly number[], latency: number): RuntimeInfo {
  const used = [...new Set(buckets)].sort((a, b) => a - b);
  const hash = (bucket: number): string => model.artifacts.get(bucket)!.manifest.integrity.artifact_sha256.slice(0, 12);
  const idle = rows.length === 0;
  return {
    backend: idle ? 'none' : 'portable',
    device: idle ? 'none' : model.device,
    model: model.spec.name,
    model_revision: model.spec.revision,
    sequence_length: Math.max(0, ...rows.map((row) => row.ids.length)),
    question_count: rows.length,
    routing_reason: idle ? 'no_questions' : model.routingReason,
    artifact_revision: used.map((bucket) => `L${bucket}:${hash(bucket)}`).join(','),
    buckets: used,
    dtype: GRAPH.precision,
    truncated: rows.some((row) => row.truncated),
    latency_ms: Math.round(latency * 1000) / 1000,
  };
}

function toJson(prepared: Prepared, answers: Answers, usage: Usage, runtime: RuntimeInfo): JsonObject {
  return new Map<string, JsonValue>([
    ['model', runtime.model],
    ['answers', answersToJson(prepared.questions, answers)],
    ['usage', usageToJson(prepared, usage)],
    ['runtime', fromPlain(runtime)],
  ]);
}
