import { readFileSync } from 'node:fs';
import { answersToJson, formatAnswers } from '../../runtime/answers.js';
import { type Calibration, temperatures } from '../../runtime/calibration.js';
import { parseMinConfidence } from '../../runtime/confidence-gate.js';
import { InvalidRequestError } from '../../runtime/errors.js';
import { type Prepared, prepare } from '../../runtime/prompt.js';
import { parseQuestions } from '../../runtime/questions.js';
import type { PromptTokenizer } from '../../runtime/tokenizer.js';
import { usageOf, usageToJson } from '../../runtime/usage.js';
import { JsonNumber, type JsonObject, type JsonValue, parseJson, toPlain } from '../../schemas/json.js';
import { LIMITS, NO_CALIBRATION } from '../runtime/laya-tiny.js';

/** Token ids, marker positions and type of a prompt row. */
type Row = readonly [ids: readonly number[], markers: readonly number[], type: number];

/** What upstream made of a request. */
export interface Answered {
  readonly rows: readonly Row[];
  readonly logits: readonly number[][];
  /** The same with the weights rounded to FP16. */
  readonly fp16Logits: readonly number[][];
  readonly actions: readonly number[][];
  readonly answers: JsonObject;
  readonly usage: JsonObject;
}

/** A request's text and what the reference packages made of it; `error` is the exception's name. */
export interface Case {
  readonly id: number;
  /** "valid", or what is wrong with the request. */
  readonly kind: string;
  readonly request: string;
  readonly upstream: Answered | { readonly error: string };
  readonly layaApple: { readonly rows: readonly Row[] } | { readonly error: string };
}

type Made = Case['layaApple'];

/** A file of `record.py`. */
export function readRecorded(path: string): Case[] {
  return linesOf(path).map((line) => {
    const upstream = readAnswered(line.get('upstream') as JsonObject);
    const apple = line.get('laya_apple')!;
    return {
      ...requestOf(line),
      upstream,
      layaApple: apple === 'same' ? upstream : (toPlain(apple) as unknown as Made),
    };
  });
}

/** The files of `make_requests.py`, `upstream.py` and `laya_apple_prompt.py`. */
export function readRun(requests: string, upstream: string, layaApple: string): Case[] {
  const [references, apples] = [linesOf(upstream), linesOf(layaApple)];
  return linesOf(requests).map((line, index) => ({
    ...requestOf(line),
    upstream: readAnswered(references[index]!),
    layaApple: toPlain(apples[index]!) as unknown as Made,
  }));
}

const linesOf = (path: string): JsonObject[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => parseJson(line) as JsonObject);

const requestOf = (line: JsonObject) => ({
  id: Number((line.get('id') as JsonNumber).raw),
  kind: line.get('kind') as string,
  request: line.get('request') as string,
});

function readAnswered(record: JsonObject): Case['upstream'] {
  if (record.has('error')) return { error: record.get('error') as string };
  const plain = (name: string) => toPlain(record.get(name)!) as unknown;
  return {
    rows: plain('rows') as Row[],
    logits: plain('logits') as number[][],
    fp16Logits: plain('fp16_logits') as number[][],
    actions: plain('actions') as number[][],
    answers: record.get('answers') as JsonObject,
    usage: record.get('usage') as JsonObject,
  };
}

/** Parts of a request's text as the runtime takes them. */
export function partsOf(text: string) {
  const body = parseJson(text) as JsonObject;
  return { context: body.get('state')!, questions: body.get('questions')!, minConfidence: body.get('min_confidence') };
}

/** The request prepared by our code, or the code of its refusal. */
export async function prepareOurs(tokenizer: PromptTokenizer, text: string): Promise<Prepared | string> {
  try {
    const { context, questions, minConfidence } = partsOf(text);
    parseMinConfidence(minConfidence);
    return await prepare(tokenizer, LIMITS, context, parseQuestions(questions));
  } catch (error) {
    if (error instanceof InvalidRequestError) return error.code;
    throw error;
  }
}

export const rowsOf = ({ rows }: Prepared): Row[] => rows.map(({ ids, markers, qtype }) => [ids, markers, qtype]);

const CALIBRATION: Calibration = temperatures(NO_CALIBRATION);

/** What our code makes of upstream's logits. */
export function formatted(text: string, prepared: Prepared, { logits, actions }: Answered) {
  const outputs = logits.map((row, i) => ({ logits: row, actionLogits: actions[i]! }));
  const minConfidence = parseMinConfidence(partsOf(text).minConfidence);
  const answers = formatAnswers(prepared.questions, outputs, CALIBRATION, minConfidence);
  return {
    answers: answersToJson(prepared.questions, answers),
    usage: usageToJson(prepared, usageOf(prepared)),
  };
}

/**
 * Everything in which answers differ from the reference's by more than the gate allows: probabilities by `tolerance`, a
 * decision where the reference's margin is at least twice that, an abstention that the tolerance does not explain.
 */
export function answerDifferences(found: JsonObject, reference: JsonObject, tolerance: number): string[] {
  const order = (json: JsonObject): string => JSON.stringify([...json.keys()]);
  if (order(found) !== order(reference)) return [`questions ${order(found)}, not ${order(reference)}`];
  return [...reference].flatMap(([id, answer]) => {
    const [a, b] = [found.get(id) as JsonObject, answer as JsonObject];
    return compareAnswer(a, b, tolerance).map((difference) => `${JSON.stringify(id)} ${difference}`);
  });
}

const GATED = new Set(['low_confidence', 'abstention']);

function compareAnswer(found: JsonObject, reference: JsonObject, tolerance: number): string[] {
  const margin = marginOf(reference);
  const unsure = isNearThreshold(reference, tolerance);
  const fields = (json: JsonObject): string => [...json.keys()].filter((key) => !unsure || !GATED.has(key)).join();
  if (fields(found) !== fields(reference)) return [`fields ${fields(found)}, not ${fields(reference)}`];
  const bounds: Record<string, number> = { score: tolerance * Math.max(1, sizeOf(reference) - 1) };
  // The slope of the entropy has no bound where a probability comes near 0.
  if (tolerance > 0) bounds.confidence = Infinity;
  return [...reference].flatMap(([field, wanted]) => {
    if ((field === 'choice' && margin < 2 * tolerance) || (unsure && GATED.has(field))) return [];
    return differences(found.get(field)!, wanted, bounds[field] ?? tolerance, field);
  });
}

/** The last of four decimals, with room for how binary numbers hold it. */
const LAST_DIGIT = 1.001e-4;

/** Values must be equal, numbers within the bound; rounding to four decimals adds up to 1e-4. */
function differences(found: JsonValue, wanted: JsonValue, bound: number, where: string): string[] {
  if (found instanceof JsonNumber && wanted instanceof JsonNumber) {
    const distance = Math.abs(Number(found.raw) - Number(wanted.raw));
    return distance <= bound + LAST_DIGIT ? [] : [`${where}: ${found.raw}, not ${wanted.raw}`];
  }
  if (found instanceof Map && wanted instanceof Map) {
    if ([...found.keys()].join('\0') !== [...wanted.keys()].join('\0')) return [`${where}: other keys`];
    return [...wanted].flatMap(([key, one]) => differences(found.get(key)!, one, bound, `${where}.${key}`));
  }
  return found === wanted ? [] : [`${where}: ${String(found)}, not ${String(wanted)}`];
}

function probabilitiesOf(answer: JsonObject): number[] {
  const noul = answer.get('noul');
  if (noul instanceof JsonNumber) return [1 - Number(noul.raw), Number(noul.raw)];
  return [...(answer.get('probabilities') as JsonObject).values()].map((one) => Number((one as JsonNumber).raw));
}

const sizeOf = (answer: JsonObject): number => probabilitiesOf(answer).length;

function marginOf(answer: JsonObject): number {
  const [first = 0, second] = probabilitiesOf(answer).sort((a, b) => b - a);
  return second === undefined ? 1 : first - second;
}

function isNearThreshold(answer: JsonObject, tolerance: number): boolean {
  const threshold = answer.get('abstention_threshold');
  if (!(threshold instanceof JsonNumber)) return false;
  const confidence = Number((answer.get('answer_confidence') as JsonNumber).raw);
  return Math.abs(confidence - Number(threshold.raw)) <= tolerance + 1e-4;
}
