import type { AgentConfig, EncoderConfig, LayerKind } from '../../runtime/checkpoint-config.js';
import { HOST_TENSORS } from '../../runtime/checkpoint-tensors.js';
import { DenseNodes } from './nodes.js';

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
  const masks = attentionBiases(g, encoder);
  const rope = ropeTables(g, encoder, agent.maxLen);

  g.enter('encoder.embeddings');
  const rows = g.node('Gather', [g.weight(HOST_TENSORS.embeddings, [encoder.vocab, d]), 'ids']);
  let h = norm(g, rows, 'encoder.embeddings.norm', encoder);
  for (const [i, kind] of encoder.layerKinds.entries()) h = encoderLayer(g, h, i, masks[kind], rope[kind], encoder);
  g.enter('encoder.final_norm');
  h = norm(g, h, 'encoder.final_norm', encoder);
  g.publish(meanOfTokens(g, h), 'pooled');

  g.enter('type_emb');
  const types = g.node('Gather', [g.weight(HOST_TENSORS.types, [3, d]), 'types']);
  h = g.node('Add', [h, g.node('Unsqueeze', [types, g.int64([1])])]);
  for (let j = 0; j < agent.headLayers; j++) h = headLayer(g, h, `head.layers.${j}`, masks.full_attention, d);

  g.enter('scorer');
  const indices = g.node('Unsqueeze', ['markers', g.int64([2])]);
  const marked = g.node('GatherND', [h, indices], { batch_dims: { int: 1 } });
  const normed = affineNorm(g, marked, 'scorer.0', d);
  const inner = g.node('Gelu', [linear(g, normed, 'scorer.1', d, d)]);
  g.publish(g.node('Squeeze', [linear(g, inner, 'scorer.3', d, 1), g.int64([2])]), 'logits');
  g.publish(g.node('Gather', [h, g.int64(0)], { axis: { int: 1 } }), 'cls');
  return g;
}

/** The mean over each row's own tokens, (B,d): a product with weights that are 0 beyond its length. */
function meanOfTokens(g: DenseNodes, h: string): string {
  g.enter('pooled');
  const lengths = g.node('Unsqueeze', ['lengths', g.int64([1])]);
  const end = g.node('Gather', [g.node('Shape', ['ids']), g.int64(1)]);
  const isToken = g.node('Less', [g.node('Range', [g.int64(0), end, g.int64(1)]), lengths]);
  const ones = g.node('Cast', [isToken], FLOAT);
  const shares = g.node('Div', [ones, g.node('Cast', [lengths], FLOAT)]);
  return g.node('Squeeze', [g.node('MatMul', [g.node('Unsqueeze', [shares, g.int64([1])]), h]), g.int64([1])]);
}

/** float32, as Cast names it. */
const FLOAT = { to: { int: 1 } };

/** Added to the scores (B,1,L or 1,L): padding is never seen, and by sliding layers nothing outside the window. */
function attentionBiases(g: DenseNodes, { window }: EncoderConfig): Record<LayerKind, string> {
  g.enter('mask');
  const [zero, one] = [g.int64(0), g.int64(1)];
  const length = g.node('Gather', [g.node('Shape', ['ids']), one]);
  const positions = g.node('Range', [zero, length, one]);
  const lengths = g.node('Unsqueeze', ['lengths', g.int64([1])]);
  const isToken = g.node('Unsqueeze', [g.node('Less', [positions, lengths]), g.int64([1, 2])]);
  const queries = g.node('Unsqueeze', [positions, g.int64([1])]);
  const distances = g.node('Abs', [g.node('Sub', [queries, positions])]);
  const isNear = g.node('LessOrEqual', [distances, g.int64(window)]);
  const [seen, blocked] = [
    g.float32('seen', [], Float32Array.of(0)),
    g.float32('blocked', [], Float32Array.of(BLOCKED)),
  ];
  const square = g.node('Concat', [g.int64([1]), g.int64([1]), ...twice(g.node('Unsqueeze', [length, g.int64([0])]))], {
    axis: { int: 0 },
  });
  const full = g.node('Expand', [g.node('Where', [isToken, seen, blocked]), square]);
  return {
    full_attention: full,
    sliding_attention: g.node('Where', [g.node('And', [isToken, isNear]), seen, blocked]),
  };
}

const twice = (name: string): string[] => [name, name];

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
  const [q, k, v] = g.outputs('Split', [matmul(g, before, `${name}.attn.Wqkv`, d, 3 * d)], 3, thirds(3)) as Three;
  const rotated = [q, k].map((one) => g.node('RotaryEmbedding', [one, g.int64([0]), rope.cos, rope.sin]));
  const mixed = attention(g, [rotated[0]!, rotated[1]!, v], bias, heads);
  const middle = g.node('Add', [h, matmul(g, mixed, `${name}.attn.Wo`, d, d)]);
  const wide = matmul(g, norm(g, middle, `${name}.mlp_norm`, encoder), `${name}.mlp.Wi`, d, 2 * intermediate);
  const [value, gate] = g.outputs('Split', [wide], 2, thirds(2)) as [string, string];
  const gated = g.node('Mul', [g.node('Gelu', [value]), gate]);
  return g.node('Add', [middle, matmul(g, gated, `${name}.mlp.Wo`, intermediate, d)]);
}

type Three = [string, string, string];

const thirds = (parts: number) => ({ axis: { int: -1 }, num_outputs: { int: parts } });

function headLayer(g: DenseNodes, h: string, name: string, bias: string, d: number): string {
  g.enter(name);
  const before = affineNorm(g, h, `${name}.norm1`, d);
  const projected = biased(g, before, `${name}.self_attn.in_proj_weight`, `${name}.self_attn.in_proj_bias`, d, 3 * d);
  const parts = g.outputs('Split', [projected], 3, thirds(3)) as Three;
  const mixed = attention(g, parts, bias, Math.max(1, Math.floor(d / HEAD_SIZE)));
  const middle = g.node('Add', [h, linear(g, mixed, `${name}.self_attn.out_proj`, d, d)]);
  const inner = linear(g, affineNorm(g, middle, `${name}.norm2`, d), `${name}.linear1`, d, 4 * d);
  return g.node('Add', [middle, linear(g, g.node('Relu', [inner]), `${name}.linear2`, 4 * d, d)]);
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

/** The weight stays as the checkpoint has it, (outputs, inputs). */
function matmul(g: DenseNodes, h: string, name: string, inputs: number, outputs: number, weight?: string): string {
  return g.node('FusedMatMul', [h, g.weight(weight ?? `${name}.weight`, [outputs, inputs])], { transB: { int: 1 } });
}

function linear(g: DenseNodes, h: string, name: string, inputs: number, outputs: number): string {
  return biased(g, h, `${name}.weight`, `${name}.bias`, inputs, outputs);
}

function biased(g: DenseNodes, h: string, weight: string, bias: string, inputs: number, outputs: number): string {
  return g.node('Add', [matmul(g, h, '', inputs, outputs, weight), g.weight(bias, [outputs])]);
}
