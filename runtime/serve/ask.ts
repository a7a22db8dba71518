import { RecordError } from '../../schemas/errors.js';
import { type JsonObject, type JsonValue, parseJson } from '../../schemas/json.js';
import { pythonJson } from '../pyjson.js';
import { HttpError } from './errors.js';
import { REQUEST_LIMITS } from './limits.js';

/** The body of `POST /v1/systemone`, within the limits; the questions themselves are checked by the model. */
export interface AskBody {
  /** As it was sent: a name, or anything else. */
  readonly model: JsonValue | undefined;
  readonly state: JsonValue;
  readonly questions: JsonObject;
  readonly minConfidence: JsonValue | undefined;
}

/** Controls of upstream's server that would change the answer and are not served here. */
const UNSERVED = ['max_len', 'head_max_len', 'task', 'lang', 'lang_guess', 'hooks', 'hooks_timeout', 'hooks_raise'];

/** JSON as Python reads it: all keys in their order, the last of equal keys. */
function parseBody(text: string): JsonValue {
  try {
    return parseJson(text, { maxDepth: REQUEST_LIMITS.depth, duplicates: 'last' });
  } catch (error) {
    if (!(error instanceof RecordError)) throw error;
    const facts = { ...(error.where === undefined ? {} : { where: error.where }), cause: error };
    if (error.code === 'JSON_LIMIT') {
      const expected = `at most ${REQUEST_LIMITS.depth} levels`;
      throw new HttpError('BODY_TOO_DEEP', 'the request body is nested too deeply', { ...facts, expected });
    }
    throw new HttpError('BODY_NOT_JSON', 'the request body must be valid JSON', facts);
  }
}

/**
 * Reads a request and refuses what is too large before anything is tokenised.
 *
 * @throws HttpError BODY_NOT_JSON, BODY_INVALID, BODY_TOO_DEEP, TOO_MANY_QUESTIONS, OPTIONS_TOO_MANY, STATE_TOO_LARGE,
 * FIELD_UNSUPPORTED
 */
export function readAsk(text: string): AskBody {
  const body = parseBody(text);
  if (!(body instanceof Map) || !body.has('questions'))
    throw new HttpError('BODY_INVALID', "the request body must be an object with a 'questions' field");
  const questions = body.get('questions');
  if (!(questions instanceof Map))
    throw new HttpError('BODY_INVALID', "'questions' must be an object", { where: 'questions' });
  const state = body.get('state') ?? null;
  if (state === null) throw new HttpError('BODY_INVALID', "'state' is required", { where: 'state' });
  checkQuestions(questions);
  checkState(state);
  for (const field of UNSERVED) {
    if ((body.get(field) ?? null) === null) continue;
    const hint = 'leave it out';
    throw new HttpError('FIELD_UNSUPPORTED', `'${field}' is not supported by this server`, { where: field, hint });
  }
  return { model: body.get('model'), state, questions, minConfidence: body.get('min_confidence') };
}

function checkQuestions(questions: JsonObject): void {
  const { questions: most, totalOptions } = REQUEST_LIMITS;
  if (questions.size > most)
    throw new HttpError('TOO_MANY_QUESTIONS', `too many questions (${questions.size} > ${most})`, {
      where: 'questions',
    });
  let total = 0;
  for (const [id, question] of questions) total += countOptions(id, question);
  if (total > totalOptions)
    throw new HttpError('OPTIONS_TOO_MANY', `too many options across questions (${total} > ${totalOptions})`, {
      where: 'questions',
    });
}

function countOptions(id: string, question: JsonValue): number {
  const criteria = question instanceof Map ? question.get('criteria') : undefined;
  if (!(criteria instanceof Map) && !Array.isArray(criteria)) return 0;
  const count = criteria instanceof Map ? criteria.size : criteria.length;
  const isScore = (question as JsonObject).get('type') === 'score';
  const most = isScore ? REQUEST_LIMITS.scoreLevels : REQUEST_LIMITS.choiceOptions;
  if (count <= most) return count;
  throw new HttpError('OPTIONS_TOO_MANY', `too many ${isScore ? 'levels' : 'options'} (${count} > ${most})`, {
    where: `questions[${JSON.stringify(id.slice(0, 80))}].criteria`,
  });
}

function checkState(state: JsonValue): void {
  const most = REQUEST_LIMITS.stateCharacters;
  const text = typeof state === 'string' ? state : pythonJson(state);
  // A UTF-16 unit is at most one character, so most states are judged without counting.
  if (text.length <= most) return;
  const count = characters(text);
  if (count > most)
    throw new HttpError('STATE_TOO_LARGE', `state too large (${count} > ${most} chars)`, { where: 'state' });
}

function characters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
