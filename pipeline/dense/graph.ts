import type { AgentConfig, EncoderConfig, LayerKind } from '../../runtime/checkpoint-config.js';
import { HOST_TENSORS } from '../../runtime/checkpoint-tensors.js';
import { DenseNodes, type Rows } from './nodes.js';

/** What the graph is made of: a checkpoint's configurations. */
export interface DenseConfig {
  readonly agent: AgentConfig;
  readonly encoder: EncoderConfig;
}

/** Added to the score of a key that a query must not see; exp() of it is 0 in float32. */
const BLOCKED = -1e4;
/** Epsilon of the norms that the checkpoint's configuration says nothing about: PyTorch's default. */
const NORM_EPS = 1e-5;
const HEAD_SIZE = 64;

/**
 * The dense graph in float32 with any number of rows B, tokens L (up to the checkpoint's `max_len`) and options K:
 *
 *     ids (B,L) int64, lengths (B) int64, types (B) int64, markers (B,K) int64
 *       -> logits (B,K), cls (B,d): the state of the first token after the decision head,
 *          pooled (B,d): the mean of the encoder's states over a row's own tokens
 *
 * What stands in `ids` and `markers` beyond a row's own length and options changes nothing in its results.
 */
export function denseGraph({ agent, encoder }: DenseConfig): DenseNodes {
  const g = new DenseNodes();
  const { hidden: d } = encoder;
  const masks = attentionMasks(g, encoder);
  const rope = ropeTables(g, encoder, agent.maxLen);

  g.enter('encoder.embeddings');
  const rows = g.node('Gather', [g.weight(HOST_TENSORS.embeddings, [encoder.vocab, d]), 'ids']);
  let h = norm(g, rows, 'encoder.embeddings.norm', encoder);
  for (const [i, kind] of encoder.layerKinds.entries()) h = encoderLayer(g, h, i, masks[kind], rope[kind], encoder);
  g.enter('encoder.final_norm');
  h = norm(g, h, 'encoder.final_norm', encoder);
  g.publish(meanOfTokens(g, h, masks.isToken), 'pooled');

  g.enter('type_emb');
  const types = g.node('Gather', [g.weight(HOST_TENSORS.types, [3, d]), 'types']);
  h = g.node('Add', [h, g.node('Unsqueeze', [types, g.int64([1])])]);
  const every = { bias: masks.full_attention, of: (state: string) => state };
  const asked = askedRows(g, masks.tokens);
  const last = agent.headLayers - 1;
  for (let j = 0; j <= last; j++) h = headLayer(g, h, `head.layers.${j}`, j === last ? asked : every, d);
  if (last < 0) h = asked.of(h);

  g.enter('scorer');
  const inner = g.node('Gelu', [linear(g, affineNorm(g, h, 'scorer.0', d), 'scorer.1', d, d)]);
  const scores = g.node('Squeeze', [linear(g, inner, 'scorer.3', d, 1), g.int64([2])]);
  g.publish(g.node('Slice', [scores, g.int64([1]), g.int64([MAX_INT32]), g.int64([1])]), 'logits');
  g.publish(g.node('Gather', [h, g.int64(0)], { axis: { int: 1 } }), 'cls');
  return g;
}

const MAX_INT32 = 2 ** 31 - 1;

/** The rows of a state that a layer gives, and what its attention adds to their scores. */
interface Asked {
  readonly bias: string;
  readonly of: (state: string) => string;
}

/** The first token and the markers, (B,1+K): nothing else is read after the last layer. */
function askedRows(g: DenseNodes, tokens: string): Asked {
  g.enter('asked');
  const positions = g.node('Pad', ['markers', g.int64([0, 1, 0, 0])]);
  const indices = g.node('Unsqueeze', [positions, g.int64([2])]);
  const shape = g.node('Concat', [g.int64([1, 1]), lengthOf(g, positions), lengthOf(g, 'ids')], { axis: { int: 0 } });
  return {
    bias: g.node('Expand', [tokens, shape]),
    of: (state) => g.node('GatherND', [state, indices], { batch_dims: { int: 1 } }),
  };
}

/** Size of the second dimension, (1). */
const lengthOf = (g: DenseNodes, value: string): string => g.node('Shape', [value], { start: { int: 1 } });

/** The mean over each row's own tokens, (B,d): a product with weights that are 0 beyond its length. */
function meanOfTokens(g: DenseNodes, h: string, isToken: string): string {
  g.enter('pooled');
  const ones = g.node('Cast', [g.node('Squeeze', [isToken, g.int64([1])])], FLOAT);
  const lengths = g.node('Cast', [g.node('Unsqueeze', ['lengths', g.int64([1, 2])])], FLOAT);
  const sums = g.node('MatMul', [g.node('Div', [ones, lengths]), h]);
  return g.node('Squeeze', [sums, g.int64([1])]);
}

/** float32, as Cast names it. */
const FLOAT = { to: { int: 1 } };

interface Masks extends Record<LayerKind, string> {
  /** Which places are a row's own, (B,1,1,L) bool. */
  readonly isToken: string;
  /** Added to the scores of these and of others, (B,1,1,L). */
  readonly tokens: string;
}

/** Added to the scores (B,1,L or 1,L): padding is never seen, and by sliding layers nothing outside the window. */
function attentionMasks(g: DenseNodes, { window }: EncoderConfig): Masks {
  g.enter('mask');
  const size = lengthOf(g, 'ids');
  const positions = g.node('Range', [g.int64(0), g.node('Squeeze', [size]), g.int64(1)]);
  const isToken = g.node('Less', [positions, g.node('Unsqueeze', ['lengths', g.int64([1, 2, 3])])]);
  const distances = g.node('Abs', [g.node('Sub', [g.node('Unsqueeze', [positions, g.int64([1])]), positions])]);
  const isNear = g.node('LessOrEqual', [distances, g.int64(window)]);
  const [seen, blocked] = [
    g.float32('seen', [], Float32Array.of(0)),
    g.float32('blocked', [], Float32Array.of(BLOCKED)),
  ];
  const tokens = g.node('Where', [isToken, seen, blocked]);
  return {
    isToken,
    tokens,
    full_attention: g.node('Expand', [tokens, g.node('Concat', [g.int64([1, 1]), size, size], { axis: { int: 0 } })]),
    sliding_attention: g.node('Where', [g.node('And', [isToken, isNear]), seen, blocked]),
  };
}

interface RopeTables {
  readonly cos: string;
  readonly sin: string;
}

/** cos and sin of position * theta^(-2i/size), (max_len, size/2). */
function ropeTables(
  g: DenseNodes,
  { hidden, heads, ropeTheta }: EncoderConfig,
  length: number,
): Record<LayerKind, RopeTables> {
  const half = hidden / heads / 2;
  const table = (name: string, theta: number, f: (angle: number) => number): string => {
    const values = new Float32Array(length * half);
    for (let at = 0; at < values.length; at++) {
      const frequency = Math.fround(1 / Math.fround(theta ** ((at % half) / half)));
      values[at] = f(Math.fround(Math.floor(at / half) * frequency));
    }
    return g.float32(name, [length, half], values);
  };
  const both = (kind: string, theta: number): RopeTables => ({
    cos: table(`rope.${kind}.cos`, theta, Math.cos),
    sin: table(`rope.${kind}.sin`, theta, Math.sin),
  });
  return { full_attention: both('full', ropeTheta.full), sliding_attention: both('sliding', ropeTheta.sliding) };
}

function encoderLayer(
  g: DenseNodes,
  h: string,
  index: number,
  bias: string,
  rope: RopeTables,
  encoder: EncoderConfig,
): string {
  const { hidden: d, heads, intermediate } = encoder;
  const name = `encoder.layers.${index}`;
  g.enter(name);
  const before = index === 0 ? h : norm(g, h, `${name}.attn_norm`, encoder);
  const [q, k, v] = parts(3, d).map((rows) => matmul(g, before, `${name}.attn.Wqkv.weight`, [3 * d, d], rows)) as Three;
  const [turnedQ, turnedK] = [q, k].map((one) =>
    g.node('RotaryEmbedding', [one, g.int64([0]), rope.cos, rope.sin]),
  ) as Two;
  const mixed = attention(g, [turnedQ, turnedK, v], bias, heads);
  const middle = g.node('Add', [h, matmul(g, mixed, `${name}.attn.Wo.weight`, [d, d])]);
  const normed = norm(g, middle, `${name}.mlp_norm`, encoder);
  const [value, gate] = parts(2, intermediate).map((rows) =>
    matmul(g, normed, `${name}.mlp.Wi.weight`, [2 * intermediate, d], rows),
  ) as Two;
  const gated = g.node('Mul', [g.node('Gelu', [value]), gate]);
  return g.node('Add', [middle, matmul(g, gated, `${name}.mlp.Wo.weight`, [d, intermediate])]);
}

type Two = [string, string];
type Three = [string, string, string];

/** First row and end of each of `count` parts of a weight. One product for each part needs no copy of its result. */
const parts = (count: number, size: number): Rows[] =>
  Array.from({ length: count }, (_, i) => [i * size, (i + 1) * size]);

function headLayer(g: DenseNodes, h: string, name: string, asked: Asked, d: number): string {
  g.enter(name);
  const before = affineNorm(g, h, `${name}.norm1`, d);
  const attn = `${name}.self_attn`;
  const [q, k, v] = parts(3, d).map((rows, i) => {
    const product = matmul(g, i === 0 ? asked.of(before) : before, `${attn}.in_proj_weight`, [3 * d, d], rows);
    return g.node('Add', [product, g.weight(`${attn}.in_proj_bias`, [3 * d], rows)]);
  }) as Three;
  const mixed = attention(g, [q, k, v], asked.bias, Math.max(1, Math.floor(d / HEAD_SIZE)));
  const middle = g.node('Add', [asked.of(h), linear(g, mixed, `${attn}.out_proj`, d, d)]);
  const inner = g.node('Relu', [linear(g, affineNorm(g, middle, `${name}.norm2`, d), `${name}.linear1`, d, 4 * d)]);
  return g.node('Add', [middle, linear(g, inner, `${name}.linear2`, 4 * d, d)]);
}

/** Scores times head size^-0.5, the bias, softmax, values; all heads at once. */
function attention(g: DenseNodes, [q, k, v]: Three, bias: string, heads: number): string {
  return g.node('MultiHeadAttention', [q, k, v, '', '', bias], { num_heads: { int: heads } });
}

/** Norm with the checkpoint's weight, its epsilon, and no bias. */
function norm(g: DenseNodes, h: string, name: string, { hidden, normEps }: EncoderConfig): string {
  return g.node('LayerNormalization', [h, g.weight(`${name}.weight`, [hidden])], {
    axis: { int: -1 },
    epsilon: { float: normEps },
  });
}

function affineNorm(g: DenseNodes, h: string, name: string, d: number): string {
  return g.node('LayerNormalization', [h, g.weight(`${name}.weight`, [d]), g.weight(`${name}.bias`, [d])], {
    axis: { int: -1 },
    epsilon: { float: NORM_EPS },
  });
}

/** The weight stays as the checkpoint has it, (outputs, inputs); or some of its rows. */
function matmul(g: DenseNodes, h: string, name: string, dims: readonly number[], rows?: Rows): string {
  return g.node('FusedMatMul', [h, g.weight(name, dims, rows)], { transB: { int: 1 } });
}

function linear(g: DenseNodes, h: string, name: string, inputs: number, outputs: number): string {
  const product = matmul(g, h, `${name}.weight`, [outputs, inputs]);
  return g.node('Add', [product, g.weight(`${name}.bias`, [outputs])]);
}
