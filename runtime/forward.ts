import { actionFeatures } from './calibration.js';
import { MilError } from './errors.js';
import type { Executable } from './executor.js';
import type { HostWeights } from './host.js';
import type { PreparedRow } from './prompt.js';
import type { PromptTokenizer } from './tokenizer.js';

/** What the graph needs of a prepared row. */
export type ModelRow = Pick<PreparedRow, 'ids' | 'markers' | 'qtype'>;

/** The shortest row that a prompt can be: what everything is run on once, to be warm. */
export const shortestRow = ({ cls, mask, sep }: PromptTokenizer): ModelRow => ({
  ids: [cls.id, mask.id, sep.id],
  markers: [1],
  qtype: 0,
});

/** One bucket of a model, ready to run rows of up to `bucket` tokens. */
export interface RowModel {
  readonly host: HostWeights;
  readonly executable: Executable;
  readonly bucket: number;
  readonly padId: number;
}

/** Raw outputs of one row: a logit per option in the order of the prompt's slots, and a logit per action. */
export interface RowOutputs {
  readonly logits: number[];
  readonly actionLogits: number[];
}

/**
 * Runs one prompt row: host features, the graph, then the FP32 action head on the host (spec: graph,
 * "Host side"). Throws UnsupportedShapeError for a row that does not fit, MilError for wrong outputs.
 */
export async function forwardRow(model: RowModel, row: ModelRow, signal?: AbortSignal): Promise<RowOutputs> {
  const { host, executable, bucket, padId } = model;
  const outputs = await executable.run({ ...(await host.features(row, bucket, padId)) }, signal);
  const { logits: slots, cls } = outputs;
  if (!slots || !cls || slots.length < row.markers.length)
    throw new MilError('MIL_RUN', 'the model gave other outputs than logits and cls', { found: Object.keys(outputs) });
  const logits = Array.from(slots.subarray(0, row.markers.length));
  const features = actionFeatures(logits, row.markers.length);
  return { logits, actionLogits: Array.from(host.actionLogits(cls, features)) };
}
