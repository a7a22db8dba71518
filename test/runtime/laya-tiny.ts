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
  /** The request's `min_confidence`, null where it has none. */
  readonly minConfidence: JsonValue;
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
  readonly minConfidence: JsonValue;
}

const goldens = parseJson(readFileSync(new URL('goldens/laya-tiny.json', root), 'utf8')) as JsonObject;

export const CASES: readonly GoldenCase[] = (goldens.get('cases') as JsonObject[]).map((one) => ({
  name: one.get('name') as string,
  state: one.get('state')!,
  questions: one.get('questions')!,
  requestText: one.get('request_text') as string | undefined,
  minConfidence: one.get('min_confidence') ?? null,
  items: toPlain(one.get('items')!) as unknown as GoldenCase['items'],
  logits: toPlain(one.get('logits')!) as number[][],
  actionLogits: toPlain(one.get('action_logits')!) as number[][],
  answers: one.get('answers') as JsonObject,
  usage: one.get('usage') as JsonObject,
}));

export const INVALID: readonly InvalidCase[] = (goldens.get('invalid') as JsonObject[]).map((one) => {
  const request = one.get('request') as JsonObject;
  return {
    name: one.get('name') as string,
    state: request.get('state')!,
    questions: request.get('questions')!,
    minConfidence: request.get('min_confidence') ?? null,
  };
});
