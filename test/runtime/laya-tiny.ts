import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type JsonObject, type JsonValue, parseJson, toPlain } from '../../schemas/json.js';

const root = new URL('../../', import.meta.url);

/** The checkpoint that ships with the project, and the budgets in its configuration. */
export const TOKENIZER_DIR = fileURLToPath(new URL('models/laya-tiny/tokenizer', root));
export const LIMITS = { maxLen: 256, headMaxLen: 128 };
export const NO_CALIBRATION = { temperature: [1, 1, 1], temperatureByOptions: {} };

/** A request with what upstream made of it; JSON where the order or spelling counts. */
export interface GoldenCase {
  readonly name: string;
  readonly state: JsonValue;
  readonly questions: JsonValue;
  /** The request's own text, where the case has one. */
  readonly requestText: string | undefined;
  /** True for requests with `option_order`, which are refused. */
  readonly isOrdered: boolean;
  readonly items: readonly { ids: number[]; markers: number[]; qtype: 0 | 1 | 2 }[];
  readonly logits: readonly number[][];
  readonly actionLogits: readonly number[][];
  readonly answers: JsonObject;
  readonly usage: JsonObject;
}

export interface InvalidCase {
  readonly name: string;
  readonly state: JsonValue;
  readonly questions: JsonValue;
  /** True where it is the request's `min_confidence` that is bad, which is not the business of these modules. */
  readonly hasThreshold: boolean;
}

const goldens = parseJson(readFileSync(new URL('goldens/laya-tiny.json', root), 'utf8')) as JsonObject;

export const CASES: readonly GoldenCase[] = (goldens.get('cases') as JsonObject[]).map((one) => ({
  name: one.get('name') as string,
  state: one.get('state')!,
  questions: one.get('questions')!,
  requestText: one.get('request_text') as string | undefined,
  isOrdered: one.get('name') === 'option-order',
  items: toPlain(one.get('items')!) as unknown as GoldenCase['items'],
  logits: toPlain(one.get('logits')!) as number[][],
  actionLogits: toPlain(one.get('action_logits')!) as number[][],
  answers: withoutThresholds(one.get('answers') as JsonObject),
  usage: one.get('usage') as JsonObject,
}));

export const INVALID: readonly InvalidCase[] = (goldens.get('invalid') as JsonObject[]).map((one) => {
  const request = one.get('request') as JsonObject;
  return {
    name: one.get('name') as string,
    state: request.get('state')!,
    questions: request.get('questions')!,
    hasThreshold: request.has('min_confidence'),
  };
});

/** Answers without the fields that a request's `min_confidence` adds. */
function withoutThresholds(answers: JsonObject): JsonObject {
  for (const answer of answers.values()) {
    for (const field of ['low_confidence', 'abstention', 'abstention_threshold']) (answer as JsonObject).delete(field);
  }
  return answers;
}
