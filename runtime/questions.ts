import type { JsonObject, JsonValue } from '../schemas/json.js';
import { InvalidRequestError } from './errors.js';
import { type OptionOrder, parseOptionOrder } from './option-order.js';
import { pythonJson } from './pyjson.js';
import { choiceOptions, type Label, noulOptions, scoreOptions } from './question-options.js';
import { refuseQuestion } from './question-refusal.js';
import { excerpt, pythonStrip } from './text.js';

interface Asked {
  /** The key of the answer. */
  readonly id: string;
  /** What is asked, as the model reads it; mask tokens are still in it. */
  readonly instructions: string;
  /** What the model reads for each option, in the order of the probabilities; never empty. */
  readonly options: readonly string[];
  /** The order in which the prompt shows the options, where the question asks for one. */
  readonly optionOrder?: OptionOrder;
}

export interface ChoiceQuestion extends Asked {
  readonly type: 'choice';
  readonly labels: readonly Label[];
}

export interface ScoreQuestion extends Asked {
  readonly type: 'score';
  /** The text of each level, lowest first: the answer's legend. */
  readonly levels: readonly string[];
}

/** A yes/no question; its options are always false, then true. */
export interface NoulQuestion extends Asked {
  readonly type: 'noul';
}

export type Question = ChoiceQuestion | ScoreQuestion | NoulQuestion;
export type QuestionType = Question['type'];

/** The question types in the order of the model's type embedding. */
export const QUESTION_TYPES: readonly QuestionType[] = ['choice', 'score', 'noul'];

/**
 * Checks the `questions` of a request and renders their texts, in the request's order. Takes an object of question id
 * to definition, or a list of strings: noul questions named after themselves. Other unknown fields are ignored.
 *
 * @throws InvalidRequestError QUESTIONS_INVALID for the set as a whole, QUESTION_INVALID for one of them; `where` is
 * the path, like `questions["topic"].criteria`
 */
export function parseQuestions(value: JsonValue): Question[] {
  if (Array.isArray(value)) return parseList(value);
  if (value instanceof Map) return Array.from(value, ([id, definition]) => parseQuestion(id, definition));
  throw new InvalidRequestError('QUESTIONS_INVALID', 'questions must be an object or a list of strings', {
    expected: 'an object of question id to definition, or a list of strings',
    found: excerpt(value),
    where: 'questions',
  });
}

function parseList(list: readonly JsonValue[]): Question[] {
  const ids = new Set<string>();
  for (const [index, text] of list.entries()) {
    const isText = typeof text === 'string';
    if (isText && !ids.has(text)) {
      ids.add(text);
      continue;
    }
    throw new InvalidRequestError('QUESTIONS_INVALID', 'a list of questions holds strings, each of them once', {
      expected: isText ? 'a question that is not in the list yet' : 'a string',
      found: excerpt(text),
      where: `questions[${index}]`,
      hint: 'use an object of question id to definition for typed questions',
    });
  }
  return Array.from(ids, (text) => noulQuestion(text, text, new Map(), place(text)));
}

function parseQuestion(id: string, definition: JsonValue): Question {
  const where = place(id);
  requireId(id, where);
  if (!(definition instanceof Map)) refuseQuestion('the definition must be an object', 'an object', definition, where);
  const type = requireType(definition, where);
  const instructions = requireInstructions(definition, where);
  refuseField(definition, 'min_confidence', 'the request as a whole', where);
  if (type !== 'noul') refuseField(definition, 'labels', 'noul questions', where);
  const question = typedQuestion(id, type, instructions, definition, where);
  if (!definition.has('option_order')) return question;
  const order = definition.get('option_order');
  return { ...question, optionOrder: parseOptionOrder(order, question.options.length, `${where}.option_order`) };
}

function typedQuestion(
  id: string,
  type: QuestionType,
  instructions: string,
  definition: JsonObject,
  where: string,
): Question {
  if (type === 'noul') return noulQuestion(id, instructions, definition, where);
  const criteria = definition.get('criteria');
  if (type === 'choice') return { id, type, instructions, ...choiceOptions(criteria, `${where}.criteria`) };
  return { id, type, instructions, ...scoreOptions(criteria, `${where}.criteria`) };
}

/** Refuses a field that means something elsewhere: whoever wrote it here would get another answer than they expect. */
function refuseField(definition: JsonObject, field: string, owner: string, where: string): void {
  if (!definition.has(field)) return;
  const message = `"${field}" belongs to ${owner}`;
  refuseQuestion(message, `no "${field}"`, definition.get(field), `${where}.${field}`);
}

function noulQuestion(id: string, instructions: string, definition: JsonObject, where: string): NoulQuestion {
  requireId(id, where);
  const options = noulOptions(definition.get('criteria'), definition.get('labels'), where);
  return { id, type: 'noul', instructions, options };
}

function requireId(id: string, where: string): void {
  if (pythonStrip(id) === '') refuseQuestion('a question needs an id', 'an id that is not blank', id, where);
}

function requireType(definition: JsonObject, where: string): QuestionType {
  const type = definition.get('type');
  const known = QUESTION_TYPES.find((name) => name === type);
  return known ?? refuseQuestion('unknown question type', 'choice, score or noul', type, `${where}.type`);
}

/** The instructions as text: strings as they are, everything else as JSON. */
function requireInstructions(definition: JsonObject, where: string): string {
  const value = definition.get('instructions');
  const isBlank =
    value === undefined ||
    value === null ||
    (typeof value === 'string' && pythonStrip(value) === '') ||
    (Array.isArray(value) && value.length === 0) ||
    (value instanceof Map && value.size === 0);
  if (isBlank) {
    refuseQuestion('a question needs instructions', 'the text the model should answer', value, `${where}.instructions`);
  }
  return typeof value === 'string' ? value : pythonJson(value);
}

function place(id: string): string {
  return `questions[${JSON.stringify(id)}]`;
}
