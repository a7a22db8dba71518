import { JsonNumber, type JsonObject, type JsonValue } from '../schemas/json.js';
import {
  type Calibration,
  concentration,
  expectedLevel,
  probabilities,
  roundTo4,
  softmax,
  unit,
} from './calibration.js';
import { type Gated, gate, type MinConfidence } from './confidence-gate.js';
import { OutputError } from './errors.js';
import type { RowOutputs } from './forward.js';
import { fromSlots } from './option-order.js';
import { pythonFloat, pythonNumber } from './pyjson.js';
import { type Label, labelKey } from './question-options.js';
import { QUESTION_TYPES, type Question } from './questions.js';

/** What every answer ends with. All numbers of answers but the threshold have four decimals. */
interface Judged extends Partial<Gated> {
  /** Choice and score: 1 - entropy / ln k. Noul: the larger probability. */
  readonly confidence: number;
  /** The probability of the answer given. */
  readonly answer_confidence: number;
  readonly action: { readonly act_probability: number };
}

export interface ChoiceAnswer<L extends string | number | boolean = string | number | boolean> extends Judged {
  readonly type: 'choice';
  /** The most probable label, as the question wrote it. */
  readonly choice: L;
  /** By label; without a prototype. JavaScript lists number-like labels first, `answersToJson` doesn't. */
  readonly probabilities: Readonly<Record<L extends string ? L : string, number>>;
}

export interface ScoreAnswer extends Judged {
  readonly type: 'score';
  /** The expected level, from 0 to the number of levels - 1. */
  readonly score: number;
  /** The text of each level, by its number. */
  readonly legend: Readonly<Record<string, string>>;
  readonly probabilities: Readonly<Record<string, number>>;
}

export interface NoulAnswer extends Judged {
  readonly type: 'noul';
  /** The probability of true. */
  readonly noul: number;
}

export type Answer = ChoiceAnswer | ScoreAnswer | NoulAnswer;

/** Answers by question id; without a prototype. */
export type Answers = Readonly<Record<string, Answer>>;

/**
 * Answers from the model's outputs, with upstream's fields, order and numbers. Row i of `outputs` answers question i:
 * a logit per option in the order of the prompt's slots (more are ignored, as padding), and the logits of the actions.
 * Answers are in the order of the options, whatever the order of the slots. With `minConfidence` they also tell whether
 * they reach it.
 *
 * @throws OutputError OUTPUT_SHAPE for a missing row or logit, OUTPUT_NOT_FINITE for NaN or infinity
 */
export function formatAnswers(
  questions: readonly Question[],
  outputs: readonly Readonly<RowOutputs>[],
  calibration: Calibration,
  minConfidence?: MinConfidence,
): Answers {
  if (outputs.length !== questions.length) refuseShape('rows', questions.length, outputs.length, 'outputs');
  const answers: Record<string, Answer> = Object.create(null);
  for (const [index, question] of questions.entries()) {
    answers[question.id] = formatAnswer(question, outputs[index]!, calibration, minConfidence);
  }
  return answers;
}

function formatAnswer(
  question: Question,
  outputs: Readonly<RowOutputs>,
  calibration: Calibration,
  minConfidence: MinConfidence | undefined,
): Answer {
  requireOutputs(question, outputs);
  const k = question.options.length;
  const qtype = QUESTION_TYPES.indexOf(question.type) as 0 | 1 | 2;
  const p = fromSlots(probabilities(outputs.logits.slice(0, k), qtype, calibration), question.optionOrder);
  const highest = Math.max(...p);
  const [actProbability = 0] = softmax(outputs.actionLogits);
  const judged = (unrounded: number): Judged => {
    const [confidence, ofAnswer] = [roundTo4(unrounded), roundTo4(unit(highest))];
    const action = { act_probability: roundTo4(actProbability) };
    const gated = minConfidence === undefined ? {} : gate([ofAnswer, confidence], qtype, k, minConfidence);
    return { confidence, answer_confidence: ofAnswer, action, ...gated };
  };

  if (question.type === 'noul') {
    const [, yes = 0] = p;
    return { type: 'noul', noul: roundTo4(yes), ...judged(Math.max(yes, 1 - yes)) };
  }
  if (question.type === 'score') {
    const legend = Object.fromEntries(question.levels.entries());
    const byLevel = Object.fromEntries(p.map(roundTo4).entries());
    const score = roundTo4(expectedLevel(p));
    return { type: 'score', score, legend, probabilities: byLevel, ...judged(concentration(p)) };
  }
  const byLabel: Record<string, number> = Object.create(null);
  for (const [index, label] of question.labels.entries()) byLabel[labelKey(label)] = roundTo4(p[index]!);
  const choice = plainLabel(question.labels[p.indexOf(highest)]!);
  return { type: 'choice', choice, probabilities: byLabel, ...judged(concentration(p)) };
}

/** The answers as JSON for printing: questions and labels in the request's order, numbers as Python prints floats. */
export function answersToJson(questions: readonly Question[], answers: Answers): JsonObject {
  return new Map(questions.map((question) => [question.id, answerToJson(question, answers[question.id]!)]));
}

function answerToJson(question: Question, answer: Answer): JsonObject {
  const json = fieldsToJson(answer);
  if (question.type !== 'choice' || answer.type !== 'choice') return json;
  const chosen = question.labels.find((label) => plainLabel(label) === answer.choice)!;
  json.set('choice', chosen instanceof JsonNumber ? new JsonNumber(pythonNumber(chosen)) : chosen);
  const keys = question.labels.map(labelKey);
  json.set('probabilities', new Map(keys.map((key) => [key, floatToJson(answer.probabilities[key]!)])));
  return json;
}

type Field = string | number | boolean | Readonly<Record<string, string | number>>;

function fieldsToJson(fields: object): JsonObject {
  const entries: [string, Field][] = Object.entries(fields);
  return new Map(entries.map(([name, value]) => [name, fieldToJson(value)]));
}

function fieldToJson(value: Field): JsonValue {
  if (typeof value === 'number') return floatToJson(value);
  return typeof value === 'object' ? fieldsToJson(value) : value;
}

function floatToJson(value: number): JsonNumber {
  return new JsonNumber(pythonFloat(value));
}

function plainLabel(label: Label): string | number | boolean {
  return label instanceof JsonNumber ? Number(label.raw) : label;
}

function requireOutputs(question: Question, { logits, actionLogits }: Readonly<RowOutputs>): void {
  const where = `questions[${JSON.stringify(question.id)}]`;
  const k = question.options.length;
  if (logits.length < k) refuseShape('logits', k, logits.length, where);
  if (actionLogits.length === 0) refuseShape('action logits', 'at least 1', 0, where);
  const bad = [...logits.slice(0, k), ...actionLogits].find((value) => !Number.isFinite(value));
  if (bad === undefined) return;
  throw new OutputError('OUTPUT_NOT_FINITE', 'the model gave a number that is not finite', {
    expected: 'finite logits',
    found: String(bad),
    where,
    hint: 'check the artifact with the parity gate',
  });
}

function refuseShape(what: string, expected: unknown, found: number, where: string): never {
  throw new OutputError('OUTPUT_SHAPE', `the model gave another number of ${what}`, { expected, found, where });
}
