import type { AgentConfig, EncoderConfig } from './checkpoint-config.js';
import { CheckpointError } from './errors.js';
import { quoteName, type TensorTable } from './safetensors-header.js';

/** Width of the action head's hidden layer, and the number of its features beside the CLS state. */
const ACTION_WIDTH = 256;
const ACTION_FEATURES = 4;

/** Names and shapes of the tensors that the action head and the host read. */
export const HOST_TENSORS = {
  embeddings: 'encoder.embeddings.tok_embeddings.weight',
  types: 'type_emb.weight',
  hiddenWeight: 'act_head.0.weight',
  hiddenBias: 'act_head.0.bias',
  outWeight: 'act_head.2.weight',
  outBias: 'act_head.2.bias',
} as const;

type Shapes = Map<string, readonly number[]>;

/** Every tensor that a checkpoint of these configurations has, with its shape. */
export function expectedTensors(agent: AgentConfig, encoder: EncoderConfig): Shapes {
  const { hidden: d, vocab } = encoder;
  const shapes: Shapes = new Map();
  shapes.set(HOST_TENSORS.embeddings, [vocab, d]);
  shapes.set('encoder.embeddings.norm.weight', [d]);
  for (let i = 0; i < encoder.layers; i++) addEncoderLayer(shapes, `encoder.layers.${i}`, i > 0, encoder);
  shapes.set('encoder.final_norm.weight', [d]);
  for (let j = 0; j < agent.headLayers; j++) addHeadLayer(shapes, `head.layers.${j}`, d);
  shapes.set(HOST_TENSORS.types, [3, d]);
  addAffine(shapes, 'scorer.0', [d]);
  addAffine(shapes, 'scorer.1', [d, d]);
  addAffine(shapes, 'scorer.3', [1, d]);
  addAffine(shapes, 'act_head.0', [ACTION_WIDTH, d + ACTION_FEATURES]);
  addAffine(shapes, 'act_head.2', [agent.actCount, ACTION_WIDTH]);
  shapes.set('temperature', [3]);
  return shapes;
}

/** The first layer has no norm of its own before attention: the embeddings' norm stands there. */
function addEncoderLayer(shapes: Shapes, name: string, hasNorm: boolean, encoder: EncoderConfig): void {
  const { hidden: d, intermediate } = encoder;
  if (hasNorm) shapes.set(`${name}.attn_norm.weight`, [d]);
  shapes.set(`${name}.attn.Wqkv.weight`, [3 * d, d]);
  shapes.set(`${name}.attn.Wo.weight`, [d, d]);
  shapes.set(`${name}.mlp_norm.weight`, [d]);
  shapes.set(`${name}.mlp.Wi.weight`, [2 * intermediate, d]);
  shapes.set(`${name}.mlp.Wo.weight`, [d, intermediate]);
}

function addHeadLayer(shapes: Shapes, name: string, d: number): void {
  shapes.set(`${name}.self_attn.in_proj_weight`, [3 * d, d]);
  shapes.set(`${name}.self_attn.in_proj_bias`, [3 * d]);
  addAffine(shapes, `${name}.self_attn.out_proj`, [d, d]);
  addAffine(shapes, `${name}.linear1`, [4 * d, d]);
  addAffine(shapes, `${name}.linear2`, [d, 4 * d]);
  addAffine(shapes, `${name}.norm1`, [d]);
  addAffine(shapes, `${name}.norm2`, [d]);
}

function addAffine(shapes: Shapes, name: string, weight: readonly [number, ...number[]]): void {
  shapes.set(`${name}.weight`, weight);
  shapes.set(`${name}.bias`, [weight[0]]);
}

/**
 * Refuses weights that are not exactly the expected tensors as F16 or F32, each of them on its own.
 *
 * @throws CheckpointError CHECKPOINT_TENSORS; `found` lists up to eight complaints
 */
export function checkTensors(table: TensorTable, expected: Shapes, file: string): void {
  const complaints: string[] = [];
  for (const [name, shape] of expected) {
    const entry = table.get(name);
    if (!entry) complaints.push(`${name} is missing`);
    else if (entry.dtype !== 'F16' && entry.dtype !== 'F32') complaints.push(`${name} is ${entry.dtype}`);
    else if (`${entry.shape}` !== `${shape}`) complaints.push(`${name} is [${entry.shape}], not [${shape}]`);
  }
  for (const name of table.keys()) if (!expected.has(name)) complaints.push(`${quoteName(name)} is not expected`);
  if (complaints.length === 0) return;
  const found = complaints.slice(0, 8).join('; ');
  throw new CheckpointError('CHECKPOINT_TENSORS', `the weights don't fit the configuration: ${found}`, {
    where: file,
    expected: `${expected.size} tensors, F16 or F32, of the configuration's shapes`,
    found: complaints.length > 8 ? `${found}; ${complaints.length - 8} more` : found,
    hint: 'check that weights and configuration are of the same checkpoint revision',
  });
}
