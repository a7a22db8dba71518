import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { InvalidRequestError } from '../../runtime/errors.js';
import { Laya } from '../../runtime/laya.js';
import type { Device } from '../../runtime/open.js';
import { isSystemError, RecordError } from '../../schemas/errors.js';
import { type JsonValue, parseJson, stringifyJson } from '../../schemas/json.js';
import { printData } from '../edge.js';
import { UsageError } from '../errors.js';
import type { GlobalOptions } from '../options.js';

interface PredictOptions extends GlobalOptions {
  readonly context: string;
  readonly questions: string;
  readonly minConfidence?: string;
  readonly device: Device;
  readonly checkpoint?: string;
}

/** `predict`: prints the result as one JSON document, in the order of the request's text. */
export async function predict(model: string, options: PredictOptions): Promise<void> {
  if (options.context === '-' && options.questions === '-')
    throw new UsageError('USAGE', 'only one of --context and --questions can be read from stdin', {
      where: '--context',
    });
  const [context, questions] = [await readSource(options.context), await readSource(options.questions)];
  const request = {
    context: contextValue(context),
    questions: questionsValue(questions),
    minConfidence: thresholdValue(options.minConfidence),
  };
  const { device, checkpoint } = options;
  const laya = await Laya.open(model, { device, ...(checkpoint === undefined ? {} : { checkpoint }) });
  try {
    await printData(stringifyJson((await laya.predict(request)).toJson(), 1));
  } finally {
    await laya.close();
  }
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
