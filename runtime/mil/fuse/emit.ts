import type { Constant } from '../constants.js';
import type { OnnxGraph } from '../onnx-graph.js';
import { type Forms, matrixDims, type Value } from '../values.js';
import type { AttentionStep, FusedStep, NormStep } from './plan.js';

/** A table of a rotation, [L, D/2]. */
function table(graph: OnnxGraph, constant: Constant): string {
  return graph.transposedConstant(constant, constant.shape[1] as number, constant.shape[3] as number);
}

/** Queries, keys or values of all heads, [1, L, heads * D]. */
function sequenceOf(graph: OnnxGraph, forms: Forms, value: Value): string {
  const [channels, length] = matrixDims(value);
  return graph.node('Reshape', [forms.get(value, 'columns'), graph.int64([1, length, channels])]);
}

function emitAttention(graph: OnnxGraph, forms: Forms, step: AttentionStep): void {
  const { heads, rotation, scale } = step;
  const turned = (value: Value): string => {
    const sequence = sequenceOf(graph, forms, value);
    if (!rotation) return sequence;
    const tables = [table(graph, rotation.cos), table(graph, rotation.sin)];
    return graph.node('RotaryEmbedding', [sequence, graph.int64([0]), ...tables], { num_heads: { int: heads } });
  };
  const inputs = [turned(step.q), turned(step.k), sequenceOf(graph, forms, step.v)];
  if (step.mask) {
    const [keys, queries] = matrixDims(step.mask);
    const shape = graph.int64([1, 1, queries, keys]);
    inputs.push('', '', graph.node('Reshape', [forms.get(step.mask, 'columns'), shape]));
  }
  const mixed = graph.node('MultiHeadAttention', inputs, { num_heads: { int: heads }, scale: { float: scale } });
  const [output] = step.outputs;
  const [channels, length] = matrixDims(output);
  forms.set(output, 'columns', graph.node('Reshape', [mixed, graph.int64([length, channels])]));
}

function emitNorm(graph: OnnxGraph, forms: Forms, step: NormStep): void {
  const channels = [step.x.shape[1] as number];
  const inputs = [forms.get(step.x, 'columns'), graph.constant(step.scale, channels)];
  if (step.shift) inputs.push(graph.constant(step.shift, channels));
  const attributes = { axis: { int: 1 }, epsilon: { float: step.epsilon } };
  forms.set(step.outputs[0], 'columns', graph.node('LayerNormalization', inputs, attributes));
}

/** Adds the nodes of a fused step. */
export function emitFused(graph: OnnxGraph, forms: Forms, step: FusedStep): void {
  if (step.kind === 'attention') emitAttention(graph, forms, step);
  else emitNorm(graph, forms, step);
}
