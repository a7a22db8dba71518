import { RecordError } from '../schemas/errors.js';
import { fromPlain, JsonNumber, type JsonValue } from '../schemas/json.js';
import { OPTION_BUCKETS, optionBucket } from './calibration.js';
import { InvalidRequestError } from './errors.js';
import { excerpt } from './text.js';

/** The least confidence of an answer that counts: one number, or one by option bucket such as "choice:3-5". */
export type MinConfidence = number | ReadonlyMap<string, number>;

/** What the gate found: confident enough, not confident enough, or an answer without a confidence to judge. */
export type Abstention = 'passed' | 'abstained' | 'unevaluated';

/** The fields that a gate appends to an answer, in their order. The answer itself stays as it is. */
export interface Gated {
  /** There only when the answer abstained. */
  readonly low_confidence?: true;
  readonly abstention: Abstention;
  /** The threshold this answer was held against. */
  readonly abstention_threshold: number;
}

/** The key of a map that stands for all buckets without one; without it they have the threshold 0. */
const OTHERS = 'default';

/**
 * Reads a request's `min_confidence`, a JSON value or a plain JavaScript value: nothing (undefined or null), a number
 * within [0, 1], or a map of option buckets and "default" to such numbers.
 *
 * @throws InvalidRequestError MIN_CONFIDENCE_INVALID for anything else; `where` is the path, like
 * `min_confidence["choice:2"]`
 */
export function parseMinConfidence(given: unknown): MinConfidence | undefined {
  const value = jsonOf(given);
  if (value === null) return undefined;
  if (!(value instanceof Map)) return threshold(value, 'min_confidence');
  if (value.size === 0) refuse('a threshold by bucket, or a number', '{}', 'min_confidence');
  for (const key of value.keys()) {
    if (key === OTHERS || OPTION_BUCKETS.includes(key)) continue;
    refuse(`one of ${[...OPTION_BUCKETS, OTHERS].join(', ')}`, excerpt(key), 'min_confidence');
  }
  return new Map(Array.from(value, ([key, one]) => [key, threshold(one, `min_confidence[${JSON.stringify(key)}]`)]));
}

/**
 * Holds an answer against the threshold of its bucket. `confidences` are the numbers to judge by, of which the first
 * finite one counts; `qtype` is 0 choice, 1 score, 2 noul; `k` is the number of options.
 */
export function gate(confidences: readonly number[], qtype: 0 | 1 | 2, k: number, minConfidence: MinConfidence): Gated {
  const least = leastConfidence(minConfidence, optionBucket(qtype, k));
  const confidence = confidences.find(Number.isFinite);
  if (confidence === undefined) return { abstention: 'unevaluated', abstention_threshold: least };
  if (confidence < least) return { low_confidence: true, abstention: 'abstained', abstention_threshold: least };
  return { abstention: 'passed', abstention_threshold: least };
}

function leastConfidence(minConfidence: MinConfidence, bucket: string): number {
  if (typeof minConfidence === 'number') return minConfidence;
  return minConfidence.get(bucket) ?? minConfidence.get(OTHERS) ?? 0;
}

function threshold(value: JsonValue, where: string): number {
  if (value instanceof JsonNumber) {
    const number = Number(value.raw);
    // An integer has no negative zero.
    if (number >= 0 && number <= 1) return value.isInteger ? number + 0 : number;
  }
  return refuse('a number from 0 to 1', excerpt(value), where);
}

function jsonOf(given: unknown): JsonValue {
  try {
    return fromPlain(given ?? null);
  } catch (error) {
    if (!(error instanceof RecordError)) throw error;
    return refuse('a number from 0 to 1, or an object', error.message, 'min_confidence', error);
  }
}

function refuse(expected: string, found: string, where: string, cause?: unknown): never {
  throw new InvalidRequestError('MIN_CONFIDENCE_INVALID', '"min_confidence" is not a threshold', {
    expected,
    found,
    where,
    hint: 'give a number from 0 to 1, or an object of option bucket to number, or leave it out',
    cause,
  });
}
