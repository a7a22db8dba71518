import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { InvalidRequestError } from '../../runtime/errors.js';
import type { Laya } from '../../runtime/laya.js';
import { isSystemError, LayaError } from '../../schemas/errors.js';
import { fromPlain, type JsonObject, type JsonValue, parseJson, stringifyJson } from '../../schemas/json.js';
import { openContext, printData } from '../edge.js';
import { UsageError } from '../errors.js';
import type { Context } from '../events.js';
import { openLaya, type PredictOptions } from '../predict-options.js';

/** What lines without their own get. */
interface Shared {
  readonly questions: JsonValue | undefined;
  readonly minConfidence: number | string | undefined;
}

/** Requests that are under way at once: the next ones are read and tokenized while one runs. */
const AHEAD = 16;

/**
 * `predict --input`: a request on each line, `{id?, state | context, questions?, min_confidence?}`; a line of output for
 * each, in their order, with the request's `id` first where it has one. A request that is refused gives a line with
 * `error` and makes the exit code 1; the others are answered.
 */
export async function predictLines(
  model: string,
  input: string,
  shared: Shared,
  options: PredictOptions,
): Promise<void> {
  const context = openContext(options);
  const total = await sizeOf(input);
  const laya = await openLaya(model, options);
  try {
    const failed = await answerAll(laya, lines(input), shared, { ...context, total });
    if (failed > 0) process.exitCode = 1;
  } finally {
    await laya.close();
  }
}

type Work = Pick<Context, 'emit' | 'signal'> & { readonly total: number | undefined };

async function answerAll(laya: Laya, source: Readable, shared: Shared, { emit, signal, total }: Work): Promise<number> {
  const pending: Promise<JsonObject>[] = [];
  let [failed, bytes] = [0, 0];
  const finish = async (): Promise<void> => {
    const answer = await pending.shift()!;
    signal.throwIfAborted();
    if (answer.has('error')) failed++;
    await printData(stringifyJson(answer));
    emit({ kind: 'progress', label: 'answered', done: Math.min(bytes, total ?? bytes), ...(total ? { total } : {}) });
  };
  for await (const line of createInterface({ input: source, crlfDelay: Number.POSITIVE_INFINITY })) {
    bytes += Buffer.byteLength(line) + 1;
    if (line.trim() === '') continue;
    pending.push(answerLine(laya, line, shared, signal));
    if (pending.length >= AHEAD) await finish();
  }
  while (pending.length > 0) await finish();
  return failed;
}

/** The line's answer, or its error: what one request lacks must not stop the others. */
async function answerLine(laya: Laya, line: string, shared: Shared, signal: AbortSignal): Promise<JsonObject> {
  let id: JsonValue | undefined;
  const withId = (rest: JsonObject): JsonObject =>
    new Map([...(id === undefined ? [] : [['id', id] as const]), ...rest]);
  try {
    const request = requestOf(parseJson(line));
    id = request.get('id');
    const questions = request.get('questions') ?? shared.questions ?? null;
    const context = request.get(request.has('state') ? 'state' : 'context') ?? null;
    const minConfidence = request.get('min_confidence') ?? shared.minConfidence;
    const result = await laya.predict({ context, questions, minConfidence }, { signal });
    return withId(result.toJson());
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof LayaError)) throw error;
    return withId(new Map([['error', fromPlain(JSON.parse(JSON.stringify(error)))]]));
  }
}

function requestOf(value: JsonValue): JsonObject {
  if (value instanceof Map) return value;
  throw new InvalidRequestError('QUESTIONS_INVALID', 'a line holds something else than a request', {
    expected: 'an object with state (or context) and questions',
    where: 'input',
  });
}

/** Bytes of the input, where that is known beforehand. Throws UsageError for a file that can't be read. */
async function sizeOf(input: string): Promise<number | undefined> {
  if (input === '-') return undefined;
  try {
    return (await stat(input)).size;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new UsageError('USAGE', `can't read ${input}: ${error.message}`, { where: '--input', cause: error });
  }
}

const lines = (input: string): Readable => (input === '-' ? process.stdin : createReadStream(input));
