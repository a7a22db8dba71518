import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { InvalidRequestError } from '../../runtime/errors.js';
import { isSystemError, RecordError } from '../../schemas/errors.js';
import { type JsonValue, parseJson, stringifyJson } from '../../schemas/json.js';
import { printData } from '../edge.js';
import { UsageError } from '../errors.js';
import { openLaya, type PredictOptions } from '../predict-options.js';

/** `predict`: prints the result as one JSON document in the order of the request's text, or a line for each request. */
export async function predict(model: string, options: PredictOptions): Promise<void> {
  const shared = {
    questions: options.questions === undefined ? undefined : questionsValue(await readOnce(options, 'questions')),
    minConfidence: thresholdValue(options.minConfidence),
  };
  if (options.input !== undefined) {
    const { predictLines } = await import('./predict-lines.js');
    return predictLines(model, options.input, shared, options);
  }
  const context = contextValue(await readOnce(options, 'context'));
  const { questions } = shared;
  if (questions === undefined) throw missing('questions');
  const laya = await openLaya(model, options);
  try {
    await printData(stringifyJson((await laya.predict({ ...shared, context, questions })).toJson(), 1));
  } finally {
    await laya.close();
  }
}

const missing = (name: string): UsageError =>
  new UsageError('USAGE', `--${name} is needed`, {
    where: `--${name}`,
    hint: 'give --context and --questions, or --input with a request on each line',
  });

/** An option's text. Stdin can be read only once, and a request comes from one place. */
async function readOnce(options: PredictOptions, name: 'context' | 'questions'): Promise<string> {
  const source = options[name];
  if (source === undefined) throw missing(name);
  const fromStdin = [options.context, options.questions, options.input].filter((one) => one === '-');
  if (fromStdin.length > 1)
    throw new UsageError('USAGE', 'only one of --context, --questions and --input can be read from stdin', {
      where: `--${name}`,
    });
  if (options.context !== undefined && options.input !== undefined)
    throw new UsageError('USAGE', '--context and --input exclude each other', { where: '--context' });
  return readSource(source);
}

/** Inline text, `@file`, or `-` for stdin. */
async function readSource(source: string): Promise<string> {
  if (source === '-') return readAll(process.stdin);
  if (!source.startsWith('@')) return source;
  try {
    const bytes = await readFile(source.slice(1));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    const why = error instanceof TypeError ? 'it is not UTF-8 text' : isSystemError(error) ? error.message : undefined;
    if (why === undefined) throw error;
    throw new UsageError('USAGE', `can't read ${source.slice(1)}: ${why}`, { where: source.slice(1), cause: error });
  }
}

/** A JSON object or list is structured state; anything else is the text itself. */
function contextValue(text: string): JsonValue {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof RecordError && error.code === 'JSON_SYNTAX') return text;
    throw error;
  }
}

function questionsValue(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch (error) {
    if (!(error instanceof RecordError)) throw error;
    throw new InvalidRequestError('QUESTIONS_INVALID', `the questions are not JSON: ${error.message}`, {
      where: `--questions ${error.where ?? ''}`.trim(),
      hint: 'quote the JSON, or put it in a file: --questions @questions.json',
      cause: error,
    });
  }
}

/** The number that the text stands for; other text stays text, which no request may have as a threshold. */
function thresholdValue(text: string | undefined): number | string | undefined {
  return text === undefined || text.trim() === '' || !Number.isFinite(Number(text)) ? text : Number(text);
}
