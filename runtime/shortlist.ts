import { fromPlain, JsonNumber, type JsonObject, type JsonValue } from '../schemas/json.js';
import { InvalidRequestError, ShortlistError } from './errors.js';
import { type Answered, type Asked, extendResult, type Predictor } from './extend.js';
import { pythonFloat, pythonJson } from './pyjson.js';
import type { Label } from './question-options.js';
import { type ChoiceQuestion, parseQuestions } from './questions.js';

/** Turns texts into vectors of one length: a vector for each text, in their order. */
export type Embed = (texts: readonly string[]) => Vectors | Promise<Vectors>;
type Vectors = readonly ArrayLike<number>[];

export interface ShortlistOptions {
  /** What embeds; `model` is the encoder of the model that answers (`Laya.embed`). */
  readonly embed: Embed | 'model';
  /** Labels that a question keeps at most; default: 20. */
  readonly k?: number;
}

/** What became of one choice question. */
export interface Shortlist {
  /** The labels that were kept, most similar first; all in their order when `passthrough`. */
  readonly labels: readonly (string | number | boolean)[];
  /** The cosine of each kept label and the state, within [-1, 1]; null when `passthrough`. */
  readonly scores: readonly number[] | null;
  readonly k: number;
  /** Labels that the question came with. */
  readonly n: number;
  /** True when the question had no more than `k` labels and was asked as it is. */
  readonly passthrough: boolean;
}

/** A result with the shortlist of every choice question, by its id; without a prototype. */
export type Shortlisted<A extends Answered> = A & { readonly shortlist: Readonly<Record<string, Shortlist>> };

const DEFAULT_K = 20;

/**
 * Cuts each choice question of more than `k` labels to the `k` whose vectors are most similar to the state's, then asks
 * once. The state is embedded below the question's instructions, an option as the model reads it; all texts of a request
 * in one call. Of equal labels the earlier stays first, and a zero vector scores 0. A question that was cut has its
 * labels in the order of their rank, and loses its `option_order`, which was for all of them. Other questions are asked
 * unchanged. Probabilities are over the kept labels.
 *
 * @throws ShortlistError for a wrong `k`, `embed` or vectors; InvalidRequestError as `predict` does; what `embed` throws
 */
export async function predictShortlist<Q extends Asked, A extends Answered, Rest extends readonly unknown[]>(
  predictor: Pick<Predictor<Q, A, Rest>, 'predict' | 'embed'>,
  request: Q,
  options: ShortlistOptions,
  ...rest: Rest
): Promise<Shortlisted<A>> {
  const { embed, k } = requireOptions(options, predictor);
  const questions = fromPlain(request.questions);
  const choices = parseQuestions(questions).filter((question) => question.type === 'choice');
  const long = choices.filter(({ labels }) => labels.length > k);
  const ranked = await rank(long, requireText(fromPlain(request.context)), embed);
  const kept = new Map(Array.from(ranked, ([id, order]) => [id, order.slice(0, k)]));

  const result = await predictor.predict({ ...request, questions: reduce(questions, kept) }, ...rest);
  const shortlist: Record<string, Shortlist> = Object.create(null);
  const json = new Map<string, JsonValue>();
  for (const choice of choices) {
    const ranking = kept.get(choice.id);
    shortlist[choice.id] = describe(choice, ranking, k);
    json.set(choice.id, describeAsJson(choice, ranking, k));
  }
  return extendResult(result, { blocks: { shortlist }, json: new Map([['shortlist', json]]), runtime: {} });
}

/** An option's place among the question's labels, and its cosine. */
interface Ranked {
  readonly index: number;
  readonly score: number;
}

/** All options of each question, most similar first, by the question's id. */
async function rank(
  questions: readonly ChoiceQuestion[],
  state: string,
  embed: Embed,
): Promise<Map<string, readonly Ranked[]>> {
  if (questions.length === 0) return new Map();
  const texts = questions.flatMap(({ instructions, options }) => [`${instructions}\n${state}`, ...options]);
  const vectors = requireVectors(await embed(texts), texts.length).map(unit);
  const ranked = new Map<string, readonly Ranked[]>();
  let next = 0;
  for (const { id, options } of questions) {
    const [query, ...documents] = vectors.slice(next, next + 1 + options.length);
    next += 1 + options.length;
    const scores = documents.map((document, index) => ({ index, score: cosine(query!, document) }));
    ranked.set(
      id,
      scores.sort((a, b) => b.score - a.score),
    );
  }
  return ranked;
}

/** The vector at length 1, without overflow on the way; empty for a zero vector. */
function unit(vector: ArrayLike<number>): number[] {
  const numbers = Array.from(vector);
  const largest = numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  if (largest === 0) return [];
  const scaled = numbers.map((value) => value / largest);
  const norm = Math.sqrt(scaled.reduce((sum, value) => sum + value * value, 0));
  return scaled.map((value) => value / norm);
}

/** The cosine of two vectors at length 1, within [-1, 1]; 0 where one of them is a zero vector. */
function cosine(a: readonly number[], b: readonly number[]): number {
  if (a.length === 0 || b.length === 0) return 0;
  const dot = a.reduce((sum, value, index) => sum + value * b[index]!, 0);
  return Math.max(-1, Math.min(1, dot));
}

/** The questions with the kept options only. */
function reduce(questions: JsonValue, kept: ReadonlyMap<string, readonly Ranked[]>): JsonValue {
  if (!(questions instanceof Map)) return questions;
  return new Map(
    Array.from(questions, ([id, question]) => {
      const order = kept.get(id);
      return [id, order === undefined ? question : reduceQuestion(question as JsonObject, order)];
    }),
  );
}

function reduceQuestion(question: JsonObject, order: readonly Ranked[]): JsonObject {
  const criteria = question.get('criteria') as JsonObject | JsonValue[];
  const entries = [...criteria.entries()];
  const chosen = order.map(({ index }) => entries[index]!);
  const reduced = new Map(question);
  reduced.set(
    'criteria',
    Array.isArray(criteria) ? chosen.map(([, label]) => label) : new Map(chosen as [string, JsonValue][]),
  );
  reduced.delete('option_order');
  return reduced;
}

function describe({ labels }: ChoiceQuestion, kept: readonly Ranked[] | undefined, k: number): Shortlist {
  const chosen = kept?.map(({ index }) => labels[index]!) ?? labels;
  return {
    labels: chosen.map((label) => (label instanceof JsonNumber ? Number(label.raw) : label)),
    scores: kept?.map(({ score }) => score) ?? null,
    k,
    n: labels.length,
    passthrough: kept === undefined,
  };
}

/** The same with the labels as the request wrote them. */
function describeAsJson(question: ChoiceQuestion, kept: readonly Ranked[] | undefined, k: number): JsonObject {
  const { scores, ...described } = describe(question, kept, k);
  const json = fromPlain(described) as JsonObject;
  const labels: readonly Label[] = kept?.map(({ index }) => question.labels[index]!) ?? question.labels;
  json.set('labels', [...labels]);
  json.set('scores', scores?.map((score) => new JsonNumber(pythonFloat(score))) ?? null);
  return json;
}

function requireOptions(
  { embed, k = DEFAULT_K }: ShortlistOptions,
  predictor: { embed?(texts: readonly string[]): Promise<Vectors> },
): { readonly embed: Embed; readonly k: number } {
  if (!Number.isSafeInteger(k) || k < 1) {
    throw new ShortlistError('SHORTLIST_K_INVALID', 'k must be a positive integer', {
      expected: 'an integer of at least 1',
      found: String(k),
      where: 'k',
    });
  }
  if (typeof embed === 'function') return { embed, k };
  if (embed === 'model' && predictor.embed) return { embed: (texts) => predictor.embed!(texts), k };
  throw new ShortlistError('SHORTLIST_EMBED_INVALID', 'a shortlist needs something that embeds texts', {
    expected: "a function from texts to vectors, or 'model' for a model that can",
    found: embed === 'model' ? embed : typeof embed,
    where: 'embed',
  });
}

/** The state as the model reads it. */
function requireText(state: JsonValue): string {
  if (state !== null) return typeof state === 'string' ? state : pythonJson(state);
  throw new InvalidRequestError('STATE_INVALID', 'the state must not be null', {
    expected: 'a string, an object or a list',
    found: 'null',
    where: 'state',
  });
}

/** Vectors of finite numbers, as many as texts and as long as the first. */
function requireVectors(vectors: unknown, count: number): Vectors {
  if (!Array.isArray(vectors) || vectors.length !== count) {
    const found = Array.isArray(vectors) ? `${vectors.length} vectors` : typeof vectors;
    refuseVectors('embed must give a vector for each text', `an array of ${count} vectors`, found, 'embed');
  }
  const dimensions = lengthOf(vectors[0]);
  for (const [index, vector] of vectors.entries()) {
    const where = `embed[${index}]`;
    const length = lengthOf(vector);
    if (length === 0 || length !== dimensions) {
      refuseVectors(
        'vectors must be of one length',
        `${dimensions || 'at least 1'} numbers`,
        `${length} numbers`,
        where,
      );
    }
    const numbers = vector as ArrayLike<unknown>;
    for (let i = 0; i < length; i++) {
      if (Number.isFinite(numbers[i])) continue;
      refuseVectors('a vector holds something that is no finite number', 'a finite number', String(numbers[i]), where);
    }
  }
  return vectors;
}

function lengthOf(vector: unknown): number {
  return Array.isArray(vector) || (ArrayBuffer.isView(vector) && !(vector instanceof DataView))
    ? (vector as ArrayLike<unknown>).length
    : 0;
}

function refuseVectors(message: string, expected: string, found: string, where: string): never {
  throw new ShortlistError('SHORTLIST_VECTORS_INVALID', message, { expected, found, where });
}
