import { join } from 'node:path';
import { findModel } from '../../registry/models.js';
import { readCheckpoint } from '../../runtime/checkpoint.js';
import type { Laya } from '../../runtime/laya.js';
import { prepare } from '../../runtime/prompt.js';
import { parseQuestions } from '../../runtime/questions.js';
import { openTokenizer, type PromptTokenizer } from '../../runtime/tokenizer.js';
import { fromPlain } from '../../schemas/json.js';
import { UsageError } from '../errors.js';
import type { Context } from '../events.js';
import { checkpointFolder } from '../stages/resolve.js';

/** What one kind of request took: rows of `length` tokens, so many questions at once. */
export interface Measured {
  readonly length: number;
  readonly questions: number;
  readonly iterations: number;
  readonly graph: string;
  readonly routing_reason: string;
  readonly p50_ms: number;
  readonly p90_ms: number;
  readonly p99_ms: number;
  readonly mean_ms: number;
  readonly questions_per_second: number;
}

/** What to measure. */
export interface BenchmarkOrder {
  readonly model: string;
  readonly lengths: readonly number[];
  readonly questions: readonly number[];
  readonly warmup: number;
  readonly iterations: number;
  readonly checkpoint?: string;
}

/** Measures every length with every number of questions, one request at a time. Throws what `predict` throws. */
export async function measure(laya: Laya, order: BenchmarkOrder, context: Context): Promise<Measured[]> {
  const checkpoint = await readCheckpoint(
    order.checkpoint ?? (await checkpointFolder(findModel(order.model), context)),
  );
  const tokenizer = await openTokenizer(join(checkpoint.root, 'tokenizer'));
  const measured: Measured[] = [];
  const total = order.lengths.length * order.questions.length;
  for (const length of order.lengths)
    for (const questions of order.questions) {
      const request = await requestOf(tokenizer, checkpoint.agent, length, questions);
      measured.push(await measureOne(laya, request, { questions, ...times(order) }, context.signal));
      context.emit({ kind: 'progress', label: `L${length} x ${questions}`, done: measured.length, total });
    }
  return measured;
}

const times = ({ warmup, iterations }: BenchmarkOrder) => ({ warmup, iterations });

async function measureOne(
  laya: Laya,
  request: { context: string; questions: readonly string[] },
  { questions, warmup, iterations }: { questions: number; warmup: number; iterations: number },
  signal: AbortSignal,
): Promise<Measured> {
  for (let i = 0; i < warmup; i++) await laya.predict(request, { signal });
  const taken: number[] = [];
  let { runtime } = await laya.predict(request, { signal });
  for (let i = 0; i < iterations; i++) {
    const started = performance.now();
    ({ runtime } = await laya.predict(request, { signal }));
    taken.push(performance.now() - started);
  }
  const sum = taken.reduce((all, one) => all + one, 0);
  return {
    length: runtime.sequence_length,
    questions,
    iterations,
    graph: runtime.graph === 'dense-any' ? 'any length' : runtime.buckets.map((bucket) => `L${bucket}`).join(','),
    routing_reason: runtime.routing_reason,
    ...percentiles(taken),
    mean_ms: round(sum / taken.length),
    questions_per_second: round((1000 * questions * taken.length) / sum),
  };
}

/** Nearest-rank percentiles. */
export function percentiles(values: readonly number[]): { p50_ms: number; p90_ms: number; p99_ms: number } {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number => round(sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!);
  return { p50_ms: at(0.5), p90_ms: at(0.9), p99_ms: at(0.99) };
}

const round = (value: number): number => Math.round(value * 1000) / 1000;

/** @public Also in bench/predict.mjs. A request of one text and so many yes/no questions whose longest row has `length` tokens. Throws UsageError. */
export async function requestOf(
  tokenizer: PromptTokenizer,
  limits: { readonly maxLen: number; readonly headMaxLen: number },
  length: number,
  count: number,
): Promise<{ context: string; questions: readonly string[] }> {
  const questions = Array.from({ length: count }, (_, i) => `Is it number ${i}?`);
  const parsed = parseQuestions(fromPlain(questions));
  const longest = async (words: number): Promise<number> => {
    const { rows } = await prepare(tokenizer, limits, contextOf(words), parsed);
    return Math.max(...rows.map(({ ids }) => ids.length));
  };
  if (length > limits.maxLen || (await longest(0)) > length)
    throw new UsageError('USAGE', `no row of ${length} tokens can be asked`, {
      where: '--lengths',
      expected: `${await longest(0)} to ${limits.maxLen}`,
      found: length,
    });
  let [low, high] = [0, length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((await longest(middle)) <= length && middle < length) low = middle;
    else high = middle - 1;
  }
  return { context: contextOf(low), questions };
}

const contextOf = (words: number): string => new Array<string>(words).fill('a').join(' ');
