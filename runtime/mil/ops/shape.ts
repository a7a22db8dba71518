import type { OperationContext } from '../context.js';
import { elementCount, shapeText } from '../types.js';
import type { Emit } from './elementwise.js';

/** Gives `x` the declared shape, which `expected` must equal. */
function reshape(context: OperationContext, expected: readonly number[]): void {
  const x = context.value('x');
  const output = context.expectOutput(0, expected, context.dtype(x));
  if (elementCount(x.shape) !== elementCount(expected)) {
    context.misshapen(`a shape of ${elementCount(x.shape)} elements`, shapeText(expected));
  }
  const name = context.graph.node('Reshape', [context.forms.get(x), context.graph.int64(output.shape)]);
  context.forms.set(output, 'full', name);
}

/** A 0 keeps the dimension of `x`, one -1 takes the rest. */
function emitReshape(context: OperationContext): void {
  const x = context.value('x');
  const wanted = context.numbers('shape').map((dim, axis) => (dim === 0 ? (x.shape[axis] ?? 0) : dim));
  const rest = elementCount(x.shape) / elementCount(wanted.filter((dim) => dim !== -1));
  reshape(
    context,
    wanted.map((dim) => (dim === -1 ? rest : dim)),
  );
}

function emitExpandDims(context: OperationContext): void {
  const x = context.value('x');
  const axes = context.numbers('axes');
  const added = context.axes(axes, x.shape.length + axes.length);
  const shape = [...x.shape];
  for (const axis of added) shape.splice(axis, 0, 1);
  reshape(context, shape);
}

function emitSqueeze(context: OperationContext): void {
  const x = context.value('x');
  const ones = x.shape.flatMap((dim, axis) => (dim === 1 ? [axis] : []));
  const axes = context.axes(context.optionalNumbers('axes') ?? ones, x.shape.length);
  if (axes.some((axis) => x.shape[axis] !== 1)) context.misshapen('axes of size 1', shapeText(x.shape));
  reshape(
    context,
    x.shape.filter((_, axis) => !axes.includes(axis)),
  );
}

function emitTranspose(context: OperationContext): void {
  const x = context.value('x');
  const rank = x.shape.length;
  const perm = context.numbers('perm').map((axis) => context.axis(axis, rank));
  if (perm.length !== rank || new Set(perm).size !== rank) context.misshapen(`${rank} different axes`, String(perm));
  const name = context.graph.node('Transpose', [context.forms.get(x)], { perm: { ints: perm } });
  context.produce(
    name,
    perm.map((axis) => x.shape[axis] as number),
    context.dtype(x),
  );
}

/** The shape of a concatenation, after checking that only the axis differs. */
export function concatShape(context: OperationContext, shapes: readonly (readonly number[])[], axis: number): number[] {
  const shape = [...(shapes[0] as readonly number[])];
  for (const other of shapes.slice(1)) {
    const agrees = other.length === shape.length && other.every((dim, i) => i === axis || dim === shape[i]);
    if (!agrees) context.misshapen(`${shapeText(shape)} but for axis ${axis}`, shapeText(other));
    shape[axis] = (shape[axis] as number) + (other[axis] as number);
  }
  return shape;
}

function emitConcat(context: OperationContext): void {
  const values = context.list('values');
  const first = values[0] as (typeof values)[number];
  if (context.flag('interleave')) context.unsupported('no interleaving', 'interleave = true');
  if (values.some((value) => context.dtype(value) !== context.dtype(first))) {
    context.misshapen(`values of type ${first.dtype}`, values.map((value) => value.dtype).join());
  }
  const axis = context.axis(context.number('axis', 0), first.shape.length);
  const shape = concatShape(
    context,
    values.map((value) => value.shape),
    axis,
  );
  const inputs = values.map((value) => context.forms.get(value));
  context.produce(context.graph.node('Concat', inputs, { axis: { int: axis } }), shape, context.dtype(first));
}

function emitStack(context: OperationContext): void {
  const values = context.list('values');
  const first = values[0] as (typeof values)[number];
  const axis = context.axis(context.number('axis', 0), first.shape.length + 1);
  const single = [...first.shape.slice(0, axis), 1, ...first.shape.slice(axis)];
  const inputs = values.map((value) => {
    const agrees = shapeText(value.shape) === shapeText(first.shape) && context.dtype(value) === context.dtype(first);
    if (!agrees) context.misshapen(`values like ${shapeText(first.shape)}`, shapeText(value.shape));
    return context.graph.node('Reshape', [context.forms.get(value), context.graph.int64(single)]);
  });
  const shape = concatShape(
    context,
    inputs.map(() => single),
    axis,
  );
  context.produce(context.graph.node('Concat', inputs, { axis: { int: axis } }), shape, context.dtype(first));
}

/** The axis and the sizes of a split. */
export function splitSizes(context: OperationContext): { axis: number; sizes: number[] } {
  const x = context.value('x');
  const axis = context.axis(context.number('axis', 0), x.shape.length);
  const total = x.shape[axis] as number;
  const count = context.number('num_splits', context.step.outputs.length);
  const sizes = context.optionalNumbers('split_sizes') ?? new Array<number>(count).fill(total / count);
  const whole = sizes.every((size) => Number.isInteger(size) && size > 0);
  if (!whole || sizes.length !== context.step.outputs.length || sizes.reduce((a, b) => a + b, 0) !== total) {
    context.misshapen(`${context.step.outputs.length} sizes that add up to ${total}`, String(sizes));
  }
  return { axis, sizes };
}

function emitSplit(context: OperationContext): void {
  const x = context.value('x');
  const { axis, sizes } = splitSizes(context);
  const inputs = [context.forms.get(x), context.graph.int64(sizes)];
  const names = context.graph.outputsOf('Split', inputs, { axis: { int: axis } }, sizes.length);
  for (const [index, name] of names.entries()) {
    const shape = x.shape.map((dim, i) => (i === axis ? (sizes[index] as number) : dim));
    context.produce(name, shape, context.dtype(x), index);
  }
}

function emitTile(context: OperationContext): void {
  const x = context.value('x');
  const reps = context.numbers('reps');
  const valid = reps.length === x.shape.length && reps.every((rep) => rep > 0);
  if (!valid) context.misshapen(`${x.shape.length} positive counts`, String(reps));
  const name = context.graph.node('Tile', [context.forms.get(x), context.graph.int64(reps)]);
  context.produce(
    name,
    x.shape.map((dim, axis) => dim * (reps[axis] as number)),
    context.dtype(x),
  );
}

const PAD_MODES: Readonly<Record<string, string>> = { constant: 'constant', reflect: 'reflect', replicate: 'edge' };

/** `pad` gives a begin and an end for each of the last axes. */
function emitPad(context: OperationContext): void {
  const x = context.value('x');
  const given = context.numbers('pad');
  const rank = x.shape.length;
  if (context.dtype(x) !== 'float32') context.unsupported('a float tensor', x.dtype);
  if (given.length % 2 !== 0 || given.length > 2 * rank || given.some((size) => size < 0)) {
    context.misshapen(`at most ${2 * rank} sizes, in pairs`, String(given));
  }
  const mode = context.text('mode', 'constant');
  const onnxMode = PAD_MODES[mode] ?? context.unsupported(Object.keys(PAD_MODES).join(' or '), mode);
  const pad = [...new Array<number>(2 * rank - given.length).fill(0), ...given];
  const begin = x.shape.map((_, axis) => pad[2 * axis] as number);
  const end = x.shape.map((_, axis) => pad[2 * axis + 1] as number);
  const inputs = [context.forms.get(x), context.graph.int64([...begin, ...end])];
  if (onnxMode === 'constant') inputs.push(context.graph.float(context.number('constant_val', 0)));
  const name = context.graph.node('Pad', inputs, { mode: { string: onnxMode } });
  const shape = x.shape.map((dim, axis) => dim + (begin[axis] as number) + (end[axis] as number));
  context.produce(name, shape, 'float32');
}

function emitGather(context: OperationContext): void {
  const [x, indices] = [context.value('x'), context.value('indices')];
  const axis = context.axis(context.number('axis', 0), x.shape.length);
  if (context.number('batch_dims', 0) !== 0) context.unsupported('batch_dims = 0', 'another value');
  if (context.dtype(indices) === 'float32') context.misshapen('integer indices', indices.dtype);
  const where = context.graph.cast(context.forms.get(indices), 'int64');
  const name = context.graph.node('Gather', [context.forms.get(x), where], { axis: { int: axis } });
  const shape = [...x.shape.slice(0, axis), ...indices.shape, ...x.shape.slice(axis + 1)];
  context.produce(name, shape, context.dtype(x));
}

/** Operations that move elements without computing. */
export const SHAPE: Readonly<Record<string, Emit>> = {
  concat: emitConcat,
  expand_dims: emitExpandDims,
  gather: emitGather,
  pad: emitPad,
  reshape: emitReshape,
  split: emitSplit,
  squeeze: emitSqueeze,
  stack: emitStack,
  tile: emitTile,
  transpose: emitTranspose,
};
