import { constantElements, derivedConstant } from '../constants.js';
import type { OnnxGraph } from '../onnx-graph.js';
import { type Forms, matrixDims, type Value } from '../values.js';
import type { AttentionStep, FusedStep, NormStep, Rotation } from './plan.js';

/** Both sine factors of a rotation, [2, D/2, L]: minus the sine for the left half, the sine for the right one. */
function signedSines(graph: OnnxGraph, { sin }: Rotation): string {
  const shape = [2, sin.shape[1] as number, sin.shape[3] as number];
  const signed = derivedConstant('fp32', shape, `signed(${sin.key})`, () => {
    const values = constantElements(sin);
    return Float32Array.from([...values].map((value) => -value).concat(...values));
  });
  return graph.constant(signed);
}

/** The channels as heads, [heads, D, L], each rotated: `x * cos + halves swapped * signed sine`. */
function headsOf(graph: OnnxGraph, forms: Forms, value: Value, heads: number, rotation: Rotation | undefined): string {
  const [channels, length] = matrixDims(value);
  const width = channels / heads;
  const rows = forms.get(value, 'rows');
  if (!rotation) return graph.node('Reshape', [rows, graph.int64([heads, width, length])]);
  const halves = graph.node('Reshape', [rows, graph.int64([heads, 2, width / 2, length])]);
  const swapped = graph.node('Gather', [halves, graph.int64([1, 0])], { axis: { int: 1 } });
  const turned = graph.node('Add', [
    graph.node('Mul', [halves, graph.constant(rotation.cos, [width / 2, length])]),
    graph.node('Mul', [swapped, signedSines(graph, rotation)]),
  ]);
  return graph.node('Reshape', [turned, graph.int64([heads, width, length])]);
}

/** Scores lie as [heads, queries, keys], so that the softmax runs over contiguous keys. */
function emitAttention(graph: OnnxGraph, forms: Forms, step: AttentionStep): void {
  const { heads, rotation } = step;
  const q = headsOf(graph, forms, step.q, heads, rotation);
  const k = headsOf(graph, forms, step.k, heads, rotation);
  const v = headsOf(graph, forms, step.v, heads, undefined);
  const scores = graph.node('FusedMatMul', [q, k], { transA: { int: 1 }, alpha: { float: step.scale } });
  const masked = step.mask ? graph.node('Add', [scores, forms.get(step.mask, 'columns')]) : scores;
  const weights = graph.node('Softmax', [masked], { axis: { int: -1 } });
  const mixed = graph.node('FusedMatMul', [v, weights], { transB: { int: 1 } });
  const [output] = step.outputs;
  forms.set(output, 'rows', graph.node('Reshape', [mixed, graph.int64(matrixDims(output))]));
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
