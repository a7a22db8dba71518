import { expect } from '@jest/globals';
import { bucketFor } from '../../runtime/artifacts.js';
import { forwardRow } from '../../runtime/forward.js';
import type { Laya } from '../../runtime/laya.js';
import type { OpenModel } from '../../runtime/open.js';
import { pythonJson } from '../../runtime/pyjson.js';
import type { PromptTokenizer } from '../../runtime/tokenizer.js';
import type { JsonObject } from '../../schemas/json.js';
import { type Answered, answerDifferences, type Case, formatted, partsOf, prepareOurs, rowsOf } from './compare.js';

/** What laya-apple's prompt code takes although upstream 0.4.15 refuses it; it knows neither of the last two fields. */
const LAYA_APPLE_ACCEPTS = new Set([
  'instructions empty',
  'question id',
  'score level null',
  'state null',
  'option order',
  'min_confidence',
]);

const isAnswered = (one: Case['upstream']): one is Answered => 'rows' in one;

/**
 * S01 to S05, S08: the same requests are taken, with the same token ids and markers. Answers are formatted to the byte; a
 * last digit may differ where float32 sums of other processors fall on the other side of a half. Gives how many differ so.
 */
export async function checkPrompts(cases: readonly Case[], tokenizer: PromptTokenizer): Promise<number> {
  const problems: string[] = [];
  let lastDigits = 0;
  for (const { id, kind, request, upstream } of cases) {
    const ours = await prepareOurs(tokenizer, request);
    if (!isAnswered(upstream) || typeof ours === 'string') {
      if (isAnswered(upstream) || typeof ours !== 'string') problems.push(`${id} ${kind}: taken by one side only`);
      continue;
    }
    if (JSON.stringify(rowsOf(ours)) !== JSON.stringify(upstream.rows)) problems.push(`${id}: other token ids`);
    const { answers, usage } = formatted(request, ours, upstream);
    if (pythonJson(usage) !== pythonJson(upstream.usage)) problems.push(`${id}: usage ${pythonJson(usage)}`);
    if (pythonJson(answers) === pythonJson(upstream.answers)) continue;
    lastDigits++;
    problems.push(...answerDifferences(answers, upstream.answers, 0).map((one) => `${id}: ${one}`));
  }
  expect(problems).toEqual([]);
  return lastDigits;
}

/** laya-apple's prompt code: the same ids wherever both take a request, which it knows all fields of. */
export async function checkLayaApple(cases: readonly Case[], tokenizer: PromptTokenizer): Promise<number> {
  const problems: string[] = [];
  let compared = 0;
  for (const { id, kind, request, layaApple } of cases) {
    const ours = await prepareOurs(tokenizer, request);
    const taken = 'rows' in layaApple;
    if (typeof ours === 'string') {
      if (taken && !LAYA_APPLE_ACCEPTS.has(kind)) problems.push(`${id} ${kind}: taken by laya-apple only`);
    } else if (!taken) {
      problems.push(`${id} ${kind}: refused by laya-apple only`);
    } else if (!ours.questions.some(({ optionOrder }) => optionOrder !== undefined)) {
      compared++;
      if (JSON.stringify(rowsOf(ours)) !== JSON.stringify(layaApple.rows)) problems.push(`${id}: other token ids`);
    }
  }
  expect(problems).toEqual([]);
  return compared;
}

/** Answers of an opened model within the gate's bounds of upstream's; gives the number of answered requests. */
export async function checkAnswers(cases: readonly Case[], laya: Laya, tolerance: number): Promise<number> {
  const problems: string[] = [];
  let compared = 0;
  for (const { id, request, upstream } of cases) {
    if (!isAnswered(upstream)) continue;
    const { context, questions, minConfidence } = partsOf(request);
    const result = await laya.predict({ context, questions, minConfidence });
    const found = result.toJson().get('answers') as JsonObject;
    problems.push(...answerDifferences(found, upstream.answers, tolerance).map((one) => `${id}: ${one}`));
    compared++;
  }
  expect(problems).toEqual([]);
  return compared;
}

/**
 * FP16 weights alone move upstream's own FP32 logits by up to 0.023 on two rows of 5,151: so the artifacts' logits are
 * within 0.02 of upstream's with rounded weights on every row, and of its FP32 ones on all but one row in a thousand.
 * Gives the largest difference from each.
 */
export async function checkLogits(cases: readonly Case[], model: OpenModel) {
  const rounded: number[] = [];
  const exact: number[] = [];
  for (const { upstream } of cases) {
    if (!isAnswered(upstream)) continue;
    for (const [i, [ids, markers, type]] of upstream.rows.entries()) {
      const bucket = bucketFor(ids.length, model.spec, model.artifacts);
      const { executable } = await model.load(bucket);
      const rowModel = { host: model.host, executable, bucket, padId: model.tokenizer.pad.id };
      const { logits } = await forwardRow(rowModel, { ids, markers, qtype: type as 0 | 1 | 2 });
      rounded.push(largestDifference(logits, upstream.fp16Logits[i]!));
      exact.push(largestDifference(logits, upstream.logits[i]!));
    }
  }
  expect(rounded.filter((one) => !(one < TOLERANCE))).toEqual([]);
  expect(exact.filter((one) => !(one < TOLERANCE)).length).toBeLessThanOrEqual(exact.length / 1000);
  return { rows: rounded.length, rounded: Math.max(...rounded), exact: Math.max(...exact) };
}

const TOLERANCE = 0.02;

const largestDifference = (found: ArrayLike<number>, wanted: readonly number[]): number =>
  Math.max(...wanted.map((value, k) => Math.abs(found[k]! - value)));
