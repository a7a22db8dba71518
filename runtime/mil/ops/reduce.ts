import { derivedConstant } from '../constants.js';
import type { OperationContext } from '../context.js';
import { elementCount, shapeText } from '../types.js';
import type { Value } from '../values.js';
import type { Emit } from './elementwise.js';
import { floats } from './linear.js';

function reducedShape(context: OperationContext, shape: readonly number[], axes: readonly number[]): number[] {
  const keep = context.flag('keep_dims');
  return keep
    ? shape.map((dim, axis) => (axes.includes(axis) ? 1 : dim))
    : shape.filter((_, axis) => !axes.includes(axis));
}

function emitReduce(op: string): Emit {
  return (context) => {
    const x = context.value('x');
    floats(context, x);
    const rank = x.shape.length;
    const axes = context.axes(context.optionalNumbers('axes') ?? x.shape.map((_, axis) => axis), rank);
    const inputs = [context.forms.get(x), context.graph.int64(axes)];
    const name = context.graph.node(op, inputs, { keepdims: { int: Number(context.flag('keep_dims')) } });
    context.produce(name, reducedShape(context, x.shape, axes), 'float32');
  };
}

function emitArg(op: string): Emit {
  return (context) => {
    const x = context.value('x');
    const axis = context.axis(context.number('axis', -1), x.shape.length);
    const attributes = { axis: { int: axis }, keepdims: { int: Number(context.flag('keep_dims')) } };
    const index = context.graph.node(op, [context.forms.get(x)], attributes);
    const name = context.graph.cast(index, 'int32');
    context.produce(name, reducedShape(context, x.shape, [axis]), 'int32');
  };
}

function emitSoftmax(context: OperationContext): void {
  const x = context.value('x');
  floats(context, x);
  const axis = context.axis(context.number('axis', -1), x.shape.length);
  context.produce(context.graph.node('Softmax', [context.forms.get(x)], { axis: { int: axis } }), x.shape, 'float32');
}

function ones(shape: readonly number[]): Value {
  const key = `ones:${shape.join('x')}`;
  const constant = derivedConstant('fp32', shape, key, () => new Float32Array(elementCount(shape)).fill(1));
  return { name: key, dtype: 'fp32', shape, constant };
}

/** Operand and settings of a layer norm, checked; `gamma` and `beta` have the shape of the normalised axes. */
export function layerNormParts(context: OperationContext) {
  const x = context.value('x');
  const [gamma, beta] = [context.optional('gamma'), context.optional('beta')];
  floats(context, x, ...[gamma, beta].filter((value) => value !== undefined));
  const axes = context.axes(context.optionalNumbers('axes') ?? x.shape.map((_, axis) => axis), x.shape.length);
  const shape = axes.map((axis) => x.shape[axis] as number);
  for (const value of [gamma, beta]) {
    if (value && shapeText(value.shape) !== shapeText(shape)) {
      context.misshapen(`a scale of shape ${shapeText(shape)}`, shapeText(value.shape));
    }
  }
  context.expectOutput(0, x.shape, 'float32');
  return { x, axes, gamma: gamma ?? ones(shape), beta, epsilon: context.number('epsilon', 1e-5) };
}

/** ONNX normalises the last axes, so others are moved there and back. */
function emitLayerNorm(context: OperationContext): void {
  const { forms, graph } = context;
  const { x, axes, gamma, beta, epsilon } = layerNormParts(context);
  const rank = x.shape.length;
  const perm = [...x.shape.keys()].filter((axis) => !axes.includes(axis)).concat(axes);
  const last = perm.every((axis, index) => axis === index);
  const input = last ? forms.get(x) : graph.node('Transpose', [forms.get(x)], { perm: { ints: perm } });
  const inputs = [input, forms.get(gamma), ...(beta ? [forms.get(beta)] : [])];
  const norm = graph.node('LayerNormalization', inputs, {
    axis: { int: rank - axes.length },
    epsilon: { float: epsilon },
  });
  const back = perm.map((_, axis) => perm.indexOf(axis));
  const name = last ? norm : graph.node('Transpose', [norm], { perm: { ints: back } });
  forms.set(context.output(), 'full', name);
}

/** The five tensors of a batch norm over axis 1, checked. */
function batchNormParts(context: OperationContext) {
  const x = context.value('x');
  const [mean, variance] = [context.value('mean'), context.value('variance')];
  const channels = [x.shape[1] as number];
  const gamma = context.optional('gamma') ?? ones(channels);
  const beta = context.optional('beta');
  const vectors = [mean, variance, gamma, ...(beta ? [beta] : [])];
  floats(context, x, ...vectors);
  for (const vector of vectors) {
    if (x.shape.length < 2 || shapeText(vector.shape) !== shapeText(channels)) {
      context.misshapen(`a vector of ${channels} channels`, shapeText(vector.shape));
    }
  }
  context.expectOutput(0, x.shape, 'float32');
  return { x, mean, variance, gamma, beta, epsilon: context.number('epsilon', 1e-5) };
}

function emitBatchNorm(context: OperationContext): void {
  const { forms, graph } = context;
  const { x, mean, variance, gamma, beta, epsilon } = batchNormParts(context);
  const zeros = derivedConstant(
    'fp32',
    gamma.shape,
    `zeros:${gamma.shape}`,
    () => new Float32Array(gamma.shape[0] ?? 0),
  );
  const shift = beta ? forms.get(beta) : graph.constant(zeros);
  const inputs = [forms.get(x), forms.get(gamma), shift, forms.get(mean), forms.get(variance)];
  forms.set(context.output(), 'full', graph.node('BatchNormalization', inputs, { epsilon: { float: epsilon } }));
}

/** Operations that combine elements along axes. */
export const REDUCE: Readonly<Record<string, Emit>> = {
  batch_norm: emitBatchNorm,
  layer_norm: emitLayerNorm,
  reduce_argmax: emitArg('ArgMax'),
  reduce_argmin: emitArg('ArgMin'),
  reduce_l1_norm: emitReduce('ReduceL1'),
  reduce_l2_norm: emitReduce('ReduceL2'),
  reduce_log_sum: emitReduce('ReduceLogSum'),
  reduce_log_sum_exp: emitReduce('ReduceLogSumExp'),
  reduce_max: emitReduce('ReduceMax'),
  reduce_mean: emitReduce('ReduceMean'),
  reduce_min: emitReduce('ReduceMin'),
  reduce_prod: emitReduce('ReduceProd'),
  reduce_sum: emitReduce('ReduceSum'),
  reduce_sum_square: emitReduce('ReduceSumSquare'),
  softmax: emitSoftmax,
};
