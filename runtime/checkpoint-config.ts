import type { PlainJson } from '../schemas/json.js';
import { ConfigFields } from './config-fields.js';

/** What `rl_agent_config.json` says about prompts, the head and calibration. */
export interface AgentConfig {
  /** Longest prompt in tokens. */
  readonly maxLen: number;
  /** Tokens that instructions and options may take together. */
  readonly headMaxLen: number;
  readonly headLayers: number;
  /** Outputs of the action head: one for "answer", one for each entry of `act_costs`. */
  readonly actCount: number;
  /** Three values as they stand in the file (choice, score, noul). They may be no usable numbers: calibration decides. */
  readonly temperature: readonly unknown[];
  /** By "type:bucket", e.g. "choice:3-5"; values as they stand in the file. */
  readonly temperatureByOptions: Readonly<Record<string, unknown>>;
}

export type LayerKind = 'full_attention' | 'sliding_attention';

/** The encoder's architecture, complete: nothing else in `encoder/config.json` changes what it computes. */
export interface EncoderConfig {
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly intermediate: number;
  readonly vocab: number;
  readonly layerKinds: readonly LayerKind[];
  /** Sliding layers attend to keys at most this many positions away. */
  readonly window: number;
  readonly ropeTheta: { readonly full: number; readonly sliding: number };
  readonly normEps: number;
}

/**
 * Reads `rl_agent_config.json`. Its other keys are training records and change nothing here.
 *
 * @throws CheckpointError CHECKPOINT_CONFIG; CHECKPOINT_LAYOUT for an option layout other than "sequential"
 */
export function parseAgentConfig(file: string, bytes: Buffer): AgentConfig {
  const fields = ConfigFields.parse(file, bytes);
  fields.string('encoder');
  const layout = fields.raw('option_layout');
  if (layout !== undefined && layout !== 'sequential') {
    fields.refuse('option_layout', '"sequential"', 'CHECKPOINT_LAYOUT');
  }
  const temperature = fields.has('temperature') ? fields.raw('temperature') : [1, 1, 1];
  if (!Array.isArray(temperature) || temperature.length !== 3) {
    return fields.refuse('temperature', 'a list of exactly 3 values: choice, score, noul');
  }
  return {
    maxLen: fields.integer('max_len', 8, 1 << 20, 512),
    headMaxLen: fields.integer('head_max_len', 1, 1 << 20, 192),
    headLayers: fields.integer('head_layers', 0, 64),
    actCount: Object.keys(fields.object('act_costs')).length + 1,
    temperature,
    temperatureByOptions: fields.object('temperature_by_options'),
  };
}

/** Keys that must have one of these values where they occur; another one is a model this project doesn't convert. */
const FIXED: Readonly<Record<string, readonly PlainJson[]>> = {
  model_type: ['modernbert'],
  hidden_activation: ['gelu'],
  attention_bias: [false],
  mlp_bias: [false],
  norm_bias: [false],
  // ModernBERT has RoPE only; these two are the names its configs give to having no position embeddings.
  position_embedding_type: ['absolute', 'sans_pos'],
  rope_scaling: [null],
  pruned_heads: [null, {}],
  per_layer_config: [null, {}],
  quantization_config: [null],
  is_decoder: [false],
  is_encoder_decoder: [false],
  add_cross_attention: [false],
  chunk_size_feed_forward: [0],
};

/** Keys that are read here. */
const READ = [
  'hidden_size',
  'num_hidden_layers',
  'num_attention_heads',
  'head_dim',
  'intermediate_size',
  'vocab_size',
  'norm_eps',
  'local_attention',
  'layer_types',
  'global_attn_every_n_layers',
  'rope_parameters',
  'global_rope_theta',
  'local_rope_theta',
];

/** Keys that change nothing the encoder computes: training, other heads, token ids, how a library loads or runs it. */
const HARMLESS = [
  ...['attention_dropout', 'embedding_dropout', 'mlp_dropout', 'initializer_range', 'initializer_cutoff_factor'],
  ...['gradient_checkpointing', 'max_position_embeddings', 'layer_norm_eps', 'tie_word_embeddings', 'decoder_bias'],
  ...['classifier_activation', 'classifier_bias', 'classifier_dropout', 'classifier_pooling', 'num_labels'],
  ...['id2label', 'label2id', 'problem_type', 'finetuning_task', 'sparse_prediction', 'sparse_pred_ignore_index'],
  ...['repad_logits_with_grad', 'deterministic_flash_attn', 'reference_compile', 'attn_implementation'],
  ...['_attn_implementation', '_attn_implementation_autoset', 'architectures', 'dtype', 'torch_dtype', 'torchscript'],
  ...['transformers_version', '_name_or_path', 'name_or_path', 'tokenizer_class', 'use_cache', 'return_dict'],
  ...['output_attentions', 'output_hidden_states', 'bos_token_id', 'cls_token_id', 'eos_token_id', 'mask_token_id'],
  ...['pad_token_id', 'sep_token_id', 'unk_token_id'],
];

const KNOWN: ReadonlySet<string> = new Set([...READ, ...Object.keys(FIXED), ...HARMLESS]);

/**
 * Reads `encoder/config.json` and fails closed: a key that is not known, a value that means another computation, or
 * an architecture key that is absent is an error.
 *
 * @throws CheckpointError CHECKPOINT_CONFIG
 */
export function parseEncoderConfig(file: string, bytes: Buffer): EncoderConfig {
  const fields = ConfigFields.parse(file, bytes);
  fields.string('model_type');
  for (const [key, allowed] of Object.entries(FIXED)) fields.only(key, allowed);
  fields.refuseUnknown(KNOWN);
  const hidden = fields.integer('hidden_size', 2, 1 << 16);
  const layers = fields.integer('num_hidden_layers', 1, 512);
  const heads = fields.integer('num_attention_heads', 1, 1 << 12);
  if (hidden % heads !== 0 || (hidden / heads) % 2 !== 0) {
    fields.refuse('num_attention_heads', `a divisor of the hidden size ${hidden} that leaves an even head size`);
  }
  if (hidden % headCount(hidden) !== 0) {
    fields.refuse('hidden_size', 'a size that the decision head can split into heads of 64');
  }
  fields.only('head_dim', [null, hidden / heads]);
  return {
    hidden,
    layers,
    heads,
    intermediate: fields.integer('intermediate_size', 1, 1 << 20),
    vocab: fields.integer('vocab_size', 1, 1 << 24),
    layerKinds: layerKinds(fields, layers),
    window: Math.floor(fields.integer('local_attention', 1, 1 << 20) / 2),
    ropeTheta: ropeTheta(fields, file),
    normEps: fields.number('norm_eps', 1e-12, 0.1),
  };
}

/** Attention heads of the decision head. */
function headCount(hidden: number): number {
  return Math.max(1, Math.floor(hidden / 64));
}

function layerKinds(fields: ConfigFields, layers: number): LayerKind[] {
  const given = fields.raw('layer_types') ?? null;
  if (given === null) {
    const every = fields.integer('global_attn_every_n_layers', 1, 1 << 16);
    return Array.from({ length: layers }, (_, i) => (i % every === 0 ? 'full_attention' : 'sliding_attention'));
  }
  const isKind = (one: unknown) => one === 'full_attention' || one === 'sliding_attention';
  if (Array.isArray(given) && given.length === layers && given.every(isKind)) return given as LayerKind[];
  return fields.refuse('layer_types', `${layers} entries, each "full_attention" or "sliding_attention"`);
}

const ROPE_KEYS: ReadonlySet<string> = new Set(['rope_theta', 'rope_type']);
const THETA_BOUNDS = [1, 1e12] as const;

function ropeTheta(fields: ConfigFields, file: string): EncoderConfig['ropeTheta'] {
  const both = new ConfigFields(`${file}: rope_parameters`, fields.object('rope_parameters', true));
  both.refuseUnknown(new Set<LayerKind>(['full_attention', 'sliding_attention']));
  const base = (kind: LayerKind, legacyKey: string, fallback: number): number => {
    const legacy = fields.number(legacyKey, ...THETA_BOUNDS, fallback);
    const own = new ConfigFields(`${file}: rope_parameters.${kind}`, both.object(kind, true));
    own.refuseUnknown(ROPE_KEYS);
    own.only('rope_type', ['default']);
    return own.number('rope_theta', ...THETA_BOUNDS, legacy);
  };
  return {
    full: base('full_attention', 'global_rope_theta', 160_000),
    sliding: base('sliding_attention', 'local_rope_theta', 10_000),
  };
}
