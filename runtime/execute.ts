import { asUnavailable } from './ane/device.js';
import type { AneSession } from './ane/session.js';
import { type DenseModel, forwardBatches } from './dense/forward.js';
import { forwardRow, type ModelRow, type RowModel, type RowOutputs, shortestRow } from './forward.js';
import type { OpenModel } from './open.js';
import { type Plan, usesDense } from './plan.js';
import { ProbeError } from './probe/errors.js';

/** Rows of one request that laya-probe has at a time: the next one is there when it ends one. */
const ROWS_AT_ONCE = 4;

/**
 * Runs the rows as planned on the cpu; row i of the result belongs to row i. An aborted signal ends the work between two
 * runs. Throws Artifact*Error, MilError, OutputError; the signal's reason.
 */
export async function executePlan(
  model: OpenModel,
  plan: Plan,
  rows: readonly ModelRow[],
  signal?: AbortSignal,
): Promise<RowOutputs[]> {
  const between = (): void => signal?.throwIfAborted();
  if (plan.graph === 'dense-any') return forwardBatches(await denseModel(model), rows, between);
  const outputs: RowOutputs[] = [];
  for (const [index, row] of rows.entries()) {
    between();
    outputs.push(await forwardRow(await rowModel(model, plan.buckets[index]!), row));
  }
  return outputs;
}

/**
 * The same on the Neural Engine; an aborted signal ends the wait at once. Throws BackendUnavailableError with the
 * probe's code, UnsupportedShapeError, MilError; the signal's reason.
 */
export async function executeOnAne(
  { host, tokenizer, aneDevice }: OpenModel,
  { models }: AneSession,
  { buckets }: Plan,
  rows: readonly ModelRow[],
  signal?: AbortSignal,
): Promise<RowOutputs[]> {
  const outputs = new Array<RowOutputs>(rows.length);
  const stop = new AbortController();
  const either = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < rows.length; index = next++) {
      const bucket = buckets[index]!;
      const { executable } = models.get(bucket)!;
      outputs[index] = await forwardRow({ host, executable, bucket, padId: tokenizer.pad.id }, rows[index]!, either);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(ROWS_AT_ONCE, rows.length) }, work));
  } catch (error) {
    stop.abort(error);
    throw error instanceof ProbeError ? asUnavailable(error) : error;
  }
  aneDevice?.answered();
  return outputs;
}

/** One bucket of an open model, loaded. */
async function rowModel(model: OpenModel, bucket: number): Promise<RowModel> {
  const { executable } = await model.load(bucket);
  return { host: model.host, executable, bucket, padId: model.tokenizer.pad.id };
}

/** The any-length graph of an open model, loaded. */
async function denseModel(model: OpenModel): Promise<DenseModel> {
  const { session } = await model.cpu.loadDense();
  const { agent, encoder } = model.checkpoint;
  return { host: model.host, session, maxTokens: agent.maxLen, vocab: encoder.vocab };
}

/** Loads and runs once everything of the cpu that may answer, so that no request pays for it. */
export async function warmUp(model: OpenModel): Promise<void> {
  const row = shortestRow(model.tokenizer);
  if (usesDense(model)) await forwardBatches(await denseModel(model), [row]);
  else for (const bucket of model.artifacts.keys()) await forwardRow(await rowModel(model, bucket), row);
}
