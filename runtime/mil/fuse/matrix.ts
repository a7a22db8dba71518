import type { OperationContext } from '../context.js';
import { BINARY, binaryNode, binaryOutput, UNARY, unaryOutput } from '../ops/elementwise.js';
import { convOutput, convSettings } from '../ops/linear.js';
import { layerNormParts } from '../ops/reduce.js';
import { concatShape, splitSizes } from '../ops/shape.js';
import { elementCount } from '../types.js';
import { type Form, isMatrix, matrixDims, type Value } from '../values.js';
import { isMatrixProduct } from './match.js';
import { batchAffine } from './norm.js';

/** Translates an operation on matrices; false, with nothing added, when this one is not of that kind. */
type EmitMatrix = (context: OperationContext) => boolean;

/** The form to compute in: rows only when a computed operand lies in no other. */
function preferredForm({ forms }: OperationContext, values: readonly Value[]): 'rows' | 'columns' {
  return values.every((value) => value.constant || forms.has(value, 'columns')) ? 'columns' : 'rows';
}

/** The axis of a (1, C, 1, L) tensor in one of its matrix forms; undefined for the axes of size 1. */
function matrixAxis(axis: number, form: Form): number | undefined {
  if (axis === 1 || axis === -3) return form === 'rows' ? 0 : 1;
  if (axis === 3 || axis === -1) return form === 'rows' ? 1 : 0;
  return undefined;
}

/** Both operands of a matrix product by name, transposed by the operator where they lie the other way. */
function productNode(context: OperationContext, x: Value, y: Value): string {
  const [xForm, yForm] = [preferredForm(context, [x]), preferredForm(context, [y])];
  const inputs = [context.forms.get(x, xForm), context.forms.get(y, yForm)];
  if (xForm === 'rows' && yForm === 'rows') return context.graph.node('MatMul', inputs);
  return context.graph.node('FusedMatMul', inputs, {
    transA: { int: Number(xForm === 'columns') },
    transB: { int: Number(yForm === 'columns') },
  });
}

/** A 1x1 convolution is the product of its kernel, [outputs, inputs], and the input. */
function emitConv(context: OperationContext): boolean {
  const { forms, graph } = context;
  const [x, weight, bias] = [context.value('x'), context.value('weight'), context.optional('bias')];
  if (!isMatrix(x) || !weight.constant || (bias && !bias.constant)) return false;
  const settings = convSettings(context, 2);
  const moves = [...settings.strides, settings.groups].some((n) => n !== 1) || settings.pad.some((n) => n !== 0);
  const output = context.output();
  if (moves || weight.shape[2] !== 1 || weight.shape[3] !== 1 || !isMatrix(output)) return false;
  convOutput(context, settings);
  const [filters, channels] = weight.shape as [number, number];
  const inputs = [forms.get(x, 'columns'), graph.constant(weight.constant, [filters, channels])];
  if (bias?.constant) inputs.push(graph.constant(bias.constant, [filters]));
  forms.set(output, 'columns', graph.node('Gemm', inputs, { transB: { int: 1 } }));
  return true;
}

function emitUnary(op: string): EmitMatrix {
  return (context) => {
    const x = context.value('x');
    if (!isMatrix(x) || x.constant) return false;
    const form = preferredForm(context, [x]);
    const unary = UNARY[op] as NonNullable<(typeof UNARY)[string]>;
    context.forms.set(unaryOutput(context, x), form, unary(context, context.forms.get(x, form)));
    return true;
  };
}

function emitBinary(op: string): EmitMatrix {
  return (context) => {
    const spec = BINARY[op] as NonNullable<(typeof BINARY)[string]>;
    const operands = [context.value('x'), context.value('y')] as const;
    const scalar = (value: Value) => !isMatrix(value) && elementCount(value.shape) === 1 && value.shape.length < 3;
    if (!operands.every((value) => isMatrix(value) || scalar(value)) || !isMatrix(context.output())) return false;
    const form = preferredForm(context, operands.filter(isMatrix));
    const output = binaryOutput(context, ...operands, spec);
    const [x, y] = operands.map((value) => context.forms.get(value, isMatrix(value) ? form : 'full'));
    context.forms.set(output, form, binaryNode(context, spec, x as string, y as string));
    return true;
  };
}

function emitLayerNorm(context: OperationContext): boolean {
  const { forms, graph } = context;
  const { x, axes, gamma, beta, epsilon } = layerNormParts(context);
  if (!isMatrix(x) || String(axes) !== '1') return false;
  const inputs = [forms.get(x, 'columns'), forms.get(gamma), ...(beta ? [forms.get(beta)] : [])];
  const attributes = { axis: { int: 1 }, epsilon: { float: epsilon } };
  forms.set(context.output(), 'columns', graph.node('LayerNormalization', inputs, attributes));
  return true;
}

function emitBatchNorm(context: OperationContext): boolean {
  const { forms, graph } = context;
  const x = context.value('x');
  const affine = isMatrix(x) ? batchAffine(context.step) : undefined;
  if (!affine) return false;
  const form = preferredForm(context, [x]);
  const dims = form === 'rows' ? [x.shape[1] as number, 1] : [1, x.shape[1] as number];
  const scaled = graph.node('Mul', [forms.get(x, form), graph.constant(affine.scale, dims)]);
  const shift = affine.shift ? [graph.constant(affine.shift, dims)] : [];
  forms.set(context.output(), form, graph.node('Add', [scaled, ...shift]));
  return true;
}

function emitSoftmax(context: OperationContext): boolean {
  const x = context.value('x');
  const axis = context.axis(context.number('axis', -1), x.shape.length);
  if (!isMatrix(x) || matrixAxis(axis, 'rows') === undefined) return false;
  const form = axis === 1 ? 'columns' : 'rows';
  const name = context.graph.node('Softmax', [context.forms.get(x, form)], { axis: { int: 1 } });
  context.produce(name, x.shape, 'float32', 0, form);
  return true;
}

/** Swapping channels and positions only renames the forms. */
function emitTranspose(context: OperationContext): boolean {
  const { forms } = context;
  const x = context.value('x');
  if (!isMatrix(x) || x.constant || String(context.numbers('perm')) !== '0,3,2,1') return false;
  const form = preferredForm(context, [x]);
  const [channels, length] = matrixDims(x);
  const swapped = form === 'rows' ? 'columns' : 'rows';
  context.produce(forms.get(x, form), [1, length, 1, channels], context.dtype(x), 0, swapped);
  return true;
}

function emitSplit(context: OperationContext): boolean {
  const { forms, graph } = context;
  const x = context.value('x');
  const { axis, sizes } = splitSizes(context);
  const form = preferredForm(context, [x]);
  const along = matrixAxis(axis, form);
  if (!isMatrix(x) || x.constant || along === undefined) return false;
  const inputs = [forms.get(x, form), graph.int64(sizes)];
  const names = graph.outputsOf('Split', inputs, { axis: { int: along } }, sizes.length);
  for (const [index, name] of names.entries()) {
    const shape = x.shape.map((dim, i) => (i === axis ? (sizes[index] as number) : dim));
    context.produce(name, shape, context.dtype(x), index, form);
  }
  return true;
}

function emitConcat(context: OperationContext): boolean {
  const { forms, graph } = context;
  const values = context.list('values');
  const axis = context.axis(context.number('axis', 0), (values[0] as Value).shape.length);
  const form = preferredForm(context, values);
  const along = matrixAxis(axis, form);
  if (!values.every(isMatrix) || along === undefined || context.flag('interleave')) return false;
  const shape = concatShape(
    context,
    values.map((value) => value.shape),
    axis,
  );
  const inputs = values.map((value) => forms.get(value, form));
  const name = graph.node('Concat', inputs, { axis: { int: along } });
  context.produce(name, shape, context.dtype(values[0] as Value), 0, form);
  return true;
}

function emitEinsum(context: OperationContext): boolean {
  const values = context.list('values');
  if (!isMatrixProduct(context.step)) return false;
  const name = productNode(context, values[0] as Value, values[1] as Value);
  context.forms.set(context.output(), 'rows', name);
  return true;
}

/** Operations that are faster as operations on matrices; each is an exact rewrite. */
export const MATRIX: Readonly<Record<string, EmitMatrix>> = {
  ...Object.fromEntries(Object.keys(UNARY).map((op) => [op, emitUnary(op)])),
  ...Object.fromEntries(Object.keys(BINARY).map((op) => [op, emitBinary(op)])),
  batch_norm: emitBatchNorm,
  concat: emitConcat,
  conv: emitConv,
  einsum: emitEinsum,
  layer_norm: emitLayerNorm,
  softmax: emitSoftmax,
  split: emitSplit,
  transpose: emitTranspose,
};
