import { describe, expect, test } from '@jest/globals';
import { parseAgentConfig, parseEncoderConfig } from '../../runtime/checkpoint-config.js';

type Json = Record<string, unknown>;

const agent = (config: unknown) => parseAgentConfig('agent.json', Buffer.from(JSON.stringify(config)));
const encoder = (config: unknown) => parseEncoderConfig('encoder.json', Buffer.from(JSON.stringify(config)));
const refused = (code: string, key: string) =>
  expect.objectContaining({ name: 'CheckpointError', code, where: expect.stringContaining(key) });

/** What the published checkpoints' files hold (saved by transformers 5). */
const MODERNBERT_LARGE: Json = {
  architectures: ['ModernBertModel'],
  attention_bias: false,
  attention_dropout: 0.0,
  bos_token_id: 50281,
  classifier_activation: 'gelu',
  classifier_bias: false,
  classifier_dropout: 0.0,
  classifier_pooling: 'mean',
  cls_token_id: 50281,
  decoder_bias: true,
  deterministic_flash_attn: false,
  dtype: 'float32',
  embedding_dropout: 0.0,
  eos_token_id: 50282,
  global_attn_every_n_layers: 3,
  gradient_checkpointing: false,
  hidden_activation: 'gelu',
  hidden_size: 1024,
  initializer_cutoff_factor: 2.0,
  initializer_range: 0.02,
  intermediate_size: 2624,
  layer_norm_eps: 1e-5,
  layer_types: Array.from({ length: 28 }, (_, i) => (i % 3 === 0 ? 'full_attention' : 'sliding_attention')),
  local_attention: 128,
  max_position_embeddings: 8192,
  mlp_bias: false,
  mlp_dropout: 0.0,
  model_type: 'modernbert',
  norm_bias: false,
  norm_eps: 1e-5,
  num_attention_heads: 16,
  num_hidden_layers: 28,
  pad_token_id: 50283,
  position_embedding_type: 'absolute',
  repad_logits_with_grad: false,
  rope_parameters: {
    full_attention: { rope_theta: 160000.0, rope_type: 'default' },
    sliding_attention: { rope_theta: 10000.0, rope_type: 'default' },
  },
  sep_token_id: 50282,
  sparse_pred_ignore_index: -100,
  sparse_prediction: false,
  tie_word_embeddings: true,
  transformers_version: '5.0.0',
  vocab_size: 50368,
};

/** The same architecture family as transformers 4 writes it. */
function legacy(): Json {
  const { layer_types: _kinds, rope_parameters: _rope, dtype: _dtype, ...config } = MODERNBERT_LARGE;
  const own = { torch_dtype: 'float32', position_embedding_type: 'sans_pos', mask_token_id: 4, unk_token_id: 3 };
  return { ...config, ...own, global_rope_theta: 160000.0, local_rope_theta: 160000.0, reference_compile: null };
}

const without = (key: string): Json => Object.fromEntries(Object.entries(MODERNBERT_LARGE).filter(([k]) => k !== key));

describe('encoder/config.json', () => {
  test('of the published checkpoints is read', () => {
    const config = encoder(MODERNBERT_LARGE);
    expect(config).toMatchObject({ hidden: 1024, layers: 28, heads: 16, intermediate: 2624, vocab: 50368, window: 64 });
    expect(config.ropeTheta).toEqual({ full: 160_000, sliding: 10_000 });
    expect(config.layerKinds).toEqual(MODERNBERT_LARGE.layer_types);
  });

  // B04: RoPE bases under their older names must count, not be replaced by defaults.
  test('with RoPE bases and layer kinds under their older names is read', () => {
    const config = encoder(legacy());
    expect(config.ropeTheta).toEqual({ full: 160_000, sliding: 160_000 });
    expect(config.layerKinds).toEqual(MODERNBERT_LARGE.layer_types);
  });

  test('prefers rope_parameters, and falls back for each layer kind on its own', () => {
    const rope = { full_attention: { rope_theta: 5000 }, sliding_attention: null };
    expect(encoder({ ...legacy(), rope_parameters: rope }).ropeTheta).toEqual({ full: 5000, sliding: 160_000 });
    expect(encoder(without('rope_parameters')).ropeTheta).toEqual({ full: 160_000, sliding: 10_000 });
  });

  test('halves an odd local attention downwards', () => {
    expect(encoder({ ...MODERNBERT_LARGE, local_attention: 129 }).window).toBe(64);
  });

  // B04: a renamed or new key can't be ignored.
  test.each([
    ['rope_params', { rope_params: {} }],
    ['rope_theta', { rope_theta: 10_000 }],
    ['sliding_window', { sliding_window: 64 }],
    ['auto_map', { auto_map: {} }],
    ['__proto__', JSON.parse('{"__proto__": 1}') as Json],
  ])('with the unknown key %s is refused', (key, more) => {
    const text = `${JSON.stringify(MODERNBERT_LARGE).slice(0, -1)},${JSON.stringify(more).slice(1)}`;
    expect(() => parseEncoderConfig('encoder.json', Buffer.from(text))).toThrow(
      expect.objectContaining({ code: 'CHECKPOINT_CONFIG', found: expect.stringContaining(key) }),
    );
  });

  test.each([
    'model_type',
    'hidden_size',
    'num_hidden_layers',
    'num_attention_heads',
    'intermediate_size',
    'vocab_size',
    'norm_eps',
    'local_attention',
  ])('without %s is refused', (key) => {
    expect(() => encoder(without(key))).toThrow(refused('CHECKPOINT_CONFIG', key));
  });

  test('without any word on layer kinds is refused', () => {
    const { global_attn_every_n_layers: _every, ...config } = legacy();
    expect(() => encoder(config)).toThrow(refused('CHECKPOINT_CONFIG', 'global_attn_every_n_layers'));
  });

  test.each<[string, unknown]>([
    ['model_type', 'bert'],
    ['hidden_activation', 'silu'],
    ['hidden_activation', null],
    ['attention_bias', true],
    ['mlp_bias', true],
    ['norm_bias', true],
    ['norm_bias', 0],
    ['position_embedding_type', 'relative_key'],
    ['rope_scaling', { rope_type: 'yarn', factor: 4 }],
    ['pruned_heads', { 0: [1] }],
    ['per_layer_config', { 1: {} }],
    ['quantization_config', {}],
    ['is_decoder', true],
    ['head_dim', 32],
    ['hidden_size', 0],
    ['hidden_size', 1024.5],
    ['hidden_size', '1024'],
    ['hidden_size', 1e300],
    ['num_attention_heads', 15],
    ['num_attention_heads', 1024],
    ['vocab_size', -1],
    ['vocab_size', true],
    ['norm_eps', 0],
    ['local_attention', -1],
    ['local_attention', null],
    ['layer_types', ['full_attention']],
    ['layer_types', Array(28).fill('chunked_attention')],
    ['layer_types', 'full_attention'],
    ['local_rope_theta', null],
    ['rope_parameters', []],
  ])('with %s %j is refused', (key, value) => {
    expect(() => encoder({ ...MODERNBERT_LARGE, [key]: value })).toThrow(refused('CHECKPOINT_CONFIG', key));
  });

  test.each([
    { rope_type: 'yarn', rope_theta: 10_000 },
    { rope_type: 'default', rope_theta: 10_000, factor: 2 },
    { rope_type: 'default', rope_theta: '10000' },
    { rope_type: 'default', rope_theta: -1 },
    { rope_type: 'default', theta: 10_000 },
    [],
  ])('with RoPE parameters %j is refused', (rope) => {
    for (const kind of ['full_attention', 'sliding_attention']) {
      const config = { ...MODERNBERT_LARGE, rope_parameters: { [kind]: rope } };
      expect(() => encoder(config)).toThrow(refused('CHECKPOINT_CONFIG', kind));
    }
  });

  test('with RoPE parameters for all layers at once, or for another kind, is refused', () => {
    for (const rope of [{ rope_theta: 5 }, { full_attention: null, global_attention: null }]) {
      const config = { ...MODERNBERT_LARGE, rope_parameters: rope };
      expect(() => encoder(config)).toThrow(refused('CHECKPOINT_CONFIG', 'rope_parameters'));
    }
  });

  test.each(['', '[]', 'null', '{', '{"a":1,"a":1}', `{"a":${'['.repeat(9999)}`, '\ufeff{}', '{"hidden_size":NaN}'])(
    'with the text %j is refused',
    (text) => {
      expect(() => parseEncoderConfig('encoder.json', Buffer.from(text))).toThrow(
        refused('CHECKPOINT_CONFIG', 'encoder.json'),
      );
    },
  );

  test('that is not UTF-8 is refused', () => {
    expect(() => parseEncoderConfig('encoder.json', Buffer.from([0x7b, 0xff, 0x7d]))).toThrow(
      refused('CHECKPOINT_CONFIG', 'encoder.json'),
    );
  });
});

describe('rl_agent_config.json', () => {
  const least = { encoder: 'x', head_layers: 2 };

  test('has defaults for all but encoder and head_layers', () => {
    const { temperatureByOptions, ...rest } = agent(least);
    expect(rest).toEqual({ maxLen: 512, headMaxLen: 192, headLayers: 2, actCount: 1, temperature: [1, 1, 1] });
    expect(Object.entries(temperatureByOptions)).toEqual([]);
  });

  test('counts the actions and ignores training records', () => {
    const config = agent({
      ...least,
      act_costs: { escalate: 0.5, 10: 1 },
      max_len: 1024,
      amp_dtype: 'bf16',
      training: {},
    });
    expect(config).toMatchObject({ actCount: 3, maxLen: 1024 });
  });

  // B23: scalar values are calibration's to judge, they are kept as they are.
  test('keeps temperatures that are no usable numbers', () => {
    const temperature = ['abc', 0, -1e9];
    const config = agent({ ...least, temperature, temperature_by_options: { 'choice:2': true, 'noul:2': null } });
    expect(config.temperature).toEqual(temperature);
    expect({ ...config.temperatureByOptions }).toEqual({ 'choice:2': true, 'noul:2': null });
  });

  // B23: another vector length fails closed.
  test.each([[[1, 1]], [[1, 1, 1, 1]], [[]], [1], [null], [{ 0: 1, 1: 1, 2: 1 }]])(
    'with temperature %j is refused',
    (temperature) => {
      expect(() => agent({ ...least, temperature })).toThrow(refused('CHECKPOINT_CONFIG', 'temperature'));
    },
  );

  // B23: another option layout fails closed.
  test.each(['parallel', 'Sequential', '', null, 1])('with option layout %j is refused', (layout) => {
    expect(() => agent({ ...least, option_layout: layout })).toThrow(refused('CHECKPOINT_LAYOUT', 'option_layout'));
  });

  test('with the sequential option layout written out is read', () => {
    expect(agent({ ...least, option_layout: 'sequential' })).toMatchObject({ headLayers: 2 });
  });

  test.each<[string, unknown]>([
    ['encoder', undefined],
    ['encoder', 5],
    ['head_layers', undefined],
    ['head_layers', -1],
    ['head_layers', true],
    ['max_len', null],
    ['max_len', 0],
    ['head_max_len', 1.5],
    ['act_costs', ['escalate']],
    ['act_costs', null],
    ['temperature_by_options', []],
    ['temperature_by_options', null],
  ])('with %s %j is refused', (key, value) => {
    expect(() => agent({ ...least, [key]: value })).toThrow(refused('CHECKPOINT_CONFIG', key));
  });
});
