import type { JsonValue } from '../schemas/json.js';
import { InvalidRequestError } from './errors.js';
import { toSlots } from './option-order.js';
import { pythonJson } from './pyjson.js';
import { QUESTION_TYPES, type Question } from './questions.js';
import type { PromptTokenizer } from './tokenizer.js';

/** The checkpoint's token budgets: of a whole row, and of its question half. */
export interface PromptLimits {
  readonly maxLen: number;
  readonly headMaxLen: number;
}

/** Options that the cut made the same for the model: it can't tell them apart, so neither can the answer. */
export interface CollapsedOptions {
  readonly total: number;
  readonly distinct: number;
  /** Tokens each option was cut to, its mask token included; null when only the 48-token cut applied. */
  readonly tokensPerOption: number | null;
}

/** One question over the state, as the model takes it. */
export interface PreparedRow {
  readonly ids: readonly number[];
  /** Positions of the mask tokens in `ids`, a slot each; the question's `optionOrder` says which option is in it. */
  readonly markers: readonly number[];
  /** 0 choice, 1 score, 2 noul. */
  readonly qtype: 0 | 1 | 2;
  /** Tokens of the whole state; the same for all rows. */
  readonly stateTokens: number;
  readonly stateTokensDropped: number;
  /** Tokens of instructions and options that were cut. */
  readonly headTokensDropped: number;
  /** True when the row doesn't hold the whole state, or not even the whole question half. */
  readonly truncated: boolean;
  readonly collapsedOptions: CollapsedOptions | null;
}

/** A request ready for the model: row i belongs to question i. */
export interface Prepared {
  readonly questions: readonly Question[];
  readonly rows: readonly PreparedRow[];
  /** Tokens of all rows together. */
  readonly inputTokens: number;
}

const OPTION_TOKENS = 48;
const LEAST_INSTRUCTION_BUDGET = 16;

/**
 * Builds a row per question, with upstream's token ids:
 *
 *     [CLS] <type> question: <instructions> [SEP] [MASK] <option 0> [MASK] <option 1> ... [SEP] <state> [SEP]
 *
 * with the options in the question's `optionOrder` where there is one.
 * The state is tokenized once. What doesn't fit is cut where upstream cuts it, and reported in the row.
 *
 * @throws InvalidRequestError STATE_INVALID for a null state, TEXT_INVALID for text that isn't Unicode,
 * TOO_MANY_OPTIONS when an option's mask token would fall at or beyond `maxLen`
 */
export async function prepare(
  tokenizer: PromptTokenizer,
  limits: PromptLimits,
  state: JsonValue,
  questions: readonly Question[],
): Promise<Prepared> {
  requireState(state);
  if (questions.length === 0) return { questions, rows: [], inputTokens: 0 };
  for (const question of questions) {
    if (question.options.length > limits.maxLen) refuseOptions(question, limits, limits.maxLen);
  }

  const [stateIds, ...asked] = await Promise.all([
    tokenizer.encode(withoutMask(stateText(state), tokenizer), 'state'),
    ...questions.map((question) => encodeQuestion(tokenizer, question)),
  ]);
  // A conversation has its newest turn last, and that is the one to keep.
  const keepEnd = Array.isArray(state);
  const rows = questions.map((question, index) => {
    const head = layOutHead(tokenizer, asked[index]!, limits.headMaxLen);
    return addState(tokenizer, question, head, stateIds, keepEnd, limits);
  });
  return { questions, rows, inputTokens: rows.reduce((sum, row) => sum + row.ids.length, 0) };
}

/** The state as the model reads it: a string as it is, anything else as Python's JSON. */
function stateText(state: JsonValue): string {
  return typeof state === 'string' ? state : pythonJson(state);
}

function requireState(state: JsonValue): void {
  if (state !== null) return;
  throw new InvalidRequestError('STATE_INVALID', 'the state must not be null', {
    expected: 'a string, an object or a list',
    found: 'null',
    where: 'state',
  });
}

/** Token ids of a question's texts, before any cut; the options are in the order of the slots. */
interface QuestionTokens {
  readonly instructions: readonly number[];
  readonly options: readonly (readonly number[])[];
}

async function encodeQuestion(tokenizer: PromptTokenizer, question: Question): Promise<QuestionTokens> {
  const where = `questions[${JSON.stringify(question.id)}]`;
  const asked = `${question.type} question: ${withoutMask(question.instructions, tokenizer)}`;
  const [instructions, ...options] = await Promise.all([
    tokenizer.encode(asked, `${where}.instructions`),
    ...question.options.map((text, index) => {
      return tokenizer.encode(` ${withoutMask(text, tokenizer)}`, `${where}, option ${index}`);
    }),
  ]);
  return { instructions, options: toSlots(options, question.optionOrder) };
}

/** Every option is scored at a mask token, so the ones in the texts have to go, all of them. */
export function withoutMask(text: string, tokenizer: Pick<PromptTokenizer, 'mask'>): string {
  return text.replaceAll(tokenizer.mask.text, ' ');
}

/** The question half of a row. */
interface Head {
  readonly ids: number[];
  readonly markers: number[];
  readonly tokensDropped: number;
  readonly collapsedOptions: CollapsedOptions | null;
}

/** Cuts instructions and options to the head's budget; options come first, instructions get what they leave. */
function layOutHead(tokenizer: PromptTokenizer, asked: QuestionTokens, headMaxLen: number): Head {
  let options = asked.options.map((tokens) => [tokenizer.mask.id, ...tokens.slice(0, OPTION_TOKENS)]);
  let budget = headMaxLen - countTokens(options);
  let perOption: number | null = null;
  if (budget < LEAST_INSTRUCTION_BUDGET) {
    const limit = Math.max(4, Math.floor((headMaxLen - LEAST_INSTRUCTION_BUDGET) / options.length));
    options = options.map((tokens) => tokens.slice(0, limit));
    budget = headMaxLen - countTokens(options);
    perOption = limit;
  }
  const instructions = asked.instructions.slice(0, Math.max(8, budget));

  const ids = [tokenizer.cls.id, ...instructions, tokenizer.sep.id];
  const markers: number[] = [];
  for (const tokens of options) {
    markers.push(ids.length);
    ids.push(...tokens);
  }
  ids.push(tokenizer.sep.id);

  const wanted = asked.instructions.length + countTokens(asked.options) + options.length;
  const kept = instructions.length + countTokens(options);
  return { ids, markers, tokensDropped: wanted - kept, collapsedOptions: collapsed(options, perOption) };
}

function countTokens(texts: readonly (readonly number[])[]): number {
  return texts.reduce((sum, tokens) => sum + tokens.length, 0);
}

function collapsed(options: readonly (readonly number[])[], tokensPerOption: number | null): CollapsedOptions | null {
  const distinct = new Set(options.map((tokens) => tokens.join(' '))).size;
  return distinct === options.length ? null : { total: options.length, distinct, tokensPerOption };
}

/** Fills the room that the question half leaves with the state; `keepEnd` cuts its start instead of its end. */
function addState(
  tokenizer: PromptTokenizer,
  question: Question,
  head: Head,
  state: readonly number[],
  keepEnd: boolean,
  limits: PromptLimits,
): PreparedRow {
  const { maxLen } = limits;
  const fitting = head.markers.filter((marker) => marker < maxLen).length;
  if (fitting < head.markers.length) refuseOptions(question, limits, fitting);
  const room = Math.max(0, maxLen - head.ids.length - 1);
  const kept = keepEnd ? state.slice(Math.max(0, state.length - room)) : state.slice(0, room);
  const whole = [...head.ids, ...kept, tokenizer.sep.id];
  const stateTokensDropped = state.length - kept.length;
  return {
    ids: whole.slice(0, maxLen),
    markers: head.markers,
    qtype: QUESTION_TYPES.indexOf(question.type) as 0 | 1 | 2,
    stateTokens: state.length,
    stateTokensDropped,
    headTokensDropped: head.tokensDropped + Math.max(0, head.ids.length - maxLen),
    truncated: stateTokensDropped > 0 || whole.length > maxLen,
    collapsedOptions: head.collapsedOptions,
  };
}

function refuseOptions(question: Question, limits: PromptLimits, fitting: number): never {
  throw new InvalidRequestError('TOO_MANY_OPTIONS', 'the options do not fit into the token budget', {
    expected: `${question.options.length} options within ${limits.maxLen} tokens`,
    found: `room for ${fitting} at most`,
    where: `questions[${JSON.stringify(question.id)}]`,
    hint: 'ask with fewer options',
  });
}
