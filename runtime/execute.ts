import { type DenseModel, forwardBatches } from './dense/forward.js';
import { forwardRow, type ModelRow, type RowModel, type RowOutputs } from './forward.js';
import type { OpenModel } from './open.js';
import type { Plan } from './plan.js';

/**
 * Runs the rows as planned; row i of the result belongs to row i. An aborted signal ends the work between two runs.
 * Throws Artifact*Error, MilError, OutputError; the signal's reason.
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

/** One bucket of an open model, loaded. */
async function rowModel(model: OpenModel, bucket: number): Promise<RowModel> {
  const { executable } = await model.load(bucket);
  return { host: model.host, executable, bucket, padId: model.tokenizer.pad.id };
}

/** The any-length graph of an open model, loaded. */
async function denseModel(model: OpenModel): Promise<DenseModel> {
  const { session } = await model.loadDense();
  const { agent, encoder } = model.checkpoint;
  return { host: model.host, session, maxTokens: agent.maxLen, vocab: encoder.vocab };
}

/** Loads and runs once everything that may answer, so that no request pays for it. */
export async function warmUp(model: OpenModel): Promise<void> {
  const { cls, mask, sep } = model.tokenizer;
  const row: ModelRow = { ids: [cls.id, mask.id, sep.id], markers: [1], qtype: 0 };
  for (const bucket of model.graph === 'any-length' ? [] : model.artifacts.keys())
    await forwardRow(await rowModel(model, bucket), row);
  if (model.hasDense) await forwardBatches(await denseModel(model), [row]);
}
