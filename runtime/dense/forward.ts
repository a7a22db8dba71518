import { actionFeatures } from '../calibration.js';
import { CheckpointError, InvalidRequestError } from '../errors.js';
import type { ModelRow, RowOutputs } from '../forward.js';
import type { HostWeights } from '../host.js';
import { batchesOf } from './batches.js';
import type { DenseSession } from './session.js';

/** An any-length graph ready to run rows of up to `maxTokens` tokens; `vocab` is the number of token ids. */
export interface DenseModel {
  readonly host: Pick<HostWeights, 'actionLogits'>;
  readonly session: Pick<DenseSession, 'run'>;
  readonly maxTokens: number;
  readonly vocab: number;
}

/**
 * Runs prompt rows in batches, with the FP32 action head on the host; row i of the result belongs to row i.
 *
 * @param between Called before every batch; what it throws ends the work.
 * @throws InvalidRequestError, CheckpointError for rows that are none of this model's; MilError
 */
export async function forwardBatches(
  model: DenseModel,
  rows: readonly ModelRow[],
  between: () => void = () => undefined,
): Promise<RowOutputs[]> {
  for (const row of rows) checkRow(model, row);
  const outputs = new Array<RowOutputs>(rows.length);
  for (const batch of batchesOf(rows)) {
    between();
    const found = await model.session.run(batch.map((index) => rows[index]!));
    for (const [at, index] of batch.entries()) {
      const { logits, cls } = found[at]!;
      const features = actionFeatures(logits, logits.length);
      outputs[index] = { logits, actionLogits: Array.from(model.host.actionLogits(cls, features)) };
    }
  }
  return outputs;
}

/** The graph itself checks nothing: an index outside a table would end the run with a message of its own. */
function checkRow({ maxTokens, vocab }: DenseModel, { ids, markers, qtype }: ModelRow): void {
  const foreign = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= vocab);
  if (foreign !== undefined)
    throw new CheckpointError('CHECKPOINT_TOKENIZER', `token ${foreign} is not in the embedding table`, {
      expected: `0 to ${vocab - 1}`,
      found: foreign,
      hint: 'check that tokenizer and weights are of the same checkpoint',
    });
  const isPosition = (marker: number): boolean => Number.isInteger(marker) && marker >= 0 && marker < ids.length;
  const fits = ids.length > 0 && ids.length <= maxTokens && markers.length > 0;
  if (fits && markers.every(isPosition) && [0, 1, 2].includes(qtype)) return;
  throw new InvalidRequestError('QUESTION_INVALID', 'the row is longer than the model takes, or has bad markers', {
    expected: `1 to ${maxTokens} tokens, markers inside them; type 0, 1 or 2`,
    found: `${ids.length} tokens, markers ${markers.slice(0, 8).join()}; type ${qtype}`,
  });
}
