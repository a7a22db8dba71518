import { writeFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { findModel } from '../../registry/models.js';
import type { Device, GraphChoice } from '../../runtime/plan.js';
import { isSystemError } from '../../schemas/errors.js';
import { type Measured, measure } from '../benchmark/measure.js';
import { plot } from '../benchmark/plot.js';
import { openContext, printData } from '../edge.js';
import { UsageError } from '../errors.js';
import type { GlobalOptions } from '../options.js';
import { openLaya } from '../predict-options.js';
import { table } from '../text.js';

interface BenchmarkOptions extends GlobalOptions {
  readonly device: Device;
  readonly graph: GraphChoice;
  readonly lengths?: readonly string[];
  readonly questions: readonly string[];
  readonly warmup: string;
  readonly iters: string;
  readonly output?: string;
  readonly plot?: string;
  readonly checkpoint?: string;
}

/** `benchmark`: latencies per length and number of questions, as a table, JSON, and a picture. */
export async function benchmark(name: string, options: BenchmarkOptions): Promise<void> {
  const context = openContext(options);
  const model = findModel(name);
  const { device, graph, checkpoint } = options;
  const order = {
    model: model.name,
    lengths: numbers(options.lengths ?? model.buckets.map(String), '--lengths', 1, model.maxLen),
    questions: numbers(options.questions, '--questions', 1, 64),
    warmup: numbers([options.warmup], '--warmup', 0, 100_000)[0]!,
    iterations: numbers([options.iters], '--iters', 1, 1_000_000)[0]!,
    ...(checkpoint === undefined ? {} : { checkpoint }),
  };
  const laya = await openLaya(model.name, { device, graph, ...(checkpoint === undefined ? {} : { checkpoint }) });
  let results: Measured[];
  try {
    results = await measure(laya, order, context);
  } finally {
    await laya.close();
  }
  const report = { model: model.name, revision: model.revision, device, ...machine(), results };
  const text = JSON.stringify(report, null, 1);
  if (options.output !== undefined) await write(options.output, `${text}\n`, '--output');
  if (options.plot !== undefined) await write(options.plot, plot(`${model.name}: p50 and p99`, results), '--plot');
  await printData(options.json ? text : resultText(results));
}

const machine = () => ({
  node: process.version,
  cpus: cpus().length,
  load: Math.round(loadavg()[0]! * 100) / 100,
});

/** Whole numbers from `1,8` or `1 8`. */
function numbers(values: readonly string[], where: string, least: number, most: number): number[] {
  const texts = values.flatMap((value) => value.split(',')).map((text) => text.trim());
  const found = texts.map(Number);
  if (texts.length > 0 && texts.every((text, i) => /^\d{1,7}$/.test(text) && found[i]! >= least && found[i]! <= most))
    return [...new Set(found)];
  throw new UsageError('USAGE', `${where} takes whole numbers`, {
    where,
    expected: `${least} to ${most}, with commas between`,
    found: values,
  });
}

async function write(path: string, content: string, where: string): Promise<void> {
  await writeFile(path, content).catch((error: unknown) => {
    if (!isSystemError(error)) throw error;
    throw new UsageError('USAGE', `can't write ${path}: ${error.message}`, { where, cause: error });
  });
}

function resultText(results: readonly Measured[]): string {
  const head = ['TOKENS', 'QUESTIONS', 'GRAPH', 'P50 MS', 'P90 MS', 'P99 MS', 'QUESTIONS/S'];
  const rows = results.map((one) => [
    String(one.length),
    String(one.questions),
    one.graph,
    one.p50_ms.toFixed(2),
    one.p90_ms.toFixed(2),
    one.p99_ms.toFixed(2),
    one.questions_per_second.toFixed(1),
  ]);
  return table(head, rows);
}
