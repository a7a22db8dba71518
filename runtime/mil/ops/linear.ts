import type { OperationContext } from '../context.js';
import { broadcast } from '../reader.js';
import { shapeText } from '../types.js';
import type { Value } from '../values.js';
import type { Emit } from './elementwise.js';

const AUTO_PAD: Readonly<Record<string, string>> = {
  custom: 'NOTSET',
  same: 'SAME_UPPER',
  same_lower: 'SAME_LOWER',
  valid: 'VALID',
};

/** The settings of a convolution over `rank` spatial axes. */
export interface ConvSettings {
  readonly strides: readonly number[];
  readonly dilations: readonly number[];
  readonly groups: number;
  readonly padType: string;
  /** Begin and end for each axis; all zero unless the type is `custom`. */
  readonly pad: readonly number[];
}

export function floats(context: OperationContext, ...values: Value[]): void {
  for (const value of values) {
    if (context.dtype(value) !== 'float32') context.misshapen(`a float tensor "${value.name}"`, value.dtype);
  }
}

/** Reads and checks the settings that say how a kernel moves. */
export function convSettings(context: OperationContext, rank: number): ConvSettings {
  const padType = context.text('pad_type', 'valid');
  if (!AUTO_PAD[padType]) context.unsupported(Object.keys(AUTO_PAD).join(' or '), padType);
  const ones = new Array<number>(rank).fill(1);
  const strides = context.optionalNumbers('strides') ?? ones;
  const dilations = context.optionalNumbers('dilations') ?? ones;
  const given = padType === 'custom' ? context.numbers('pad') : new Array<number>(2 * rank).fill(0);
  const counts = [...strides, ...dilations];
  if (
    counts.length !== 2 * rank ||
    given.length !== 2 * rank ||
    counts.some((n) => n < 1) ||
    given.some((n) => n < 0)
  ) {
    context.misshapen(`settings for ${rank} axes`, `strides ${strides}, dilations ${dilations}, pad ${given}`);
  }
  return { strides, dilations, groups: context.number('groups', 1), padType, pad: given };
}

function convLength(dim: number, kernel: number, axis: number, settings: ConvSettings): number {
  const stride = settings.strides[axis] as number;
  if (settings.padType.startsWith('same')) return Math.ceil(dim / stride);
  const reach = (settings.dilations[axis] as number) * (kernel - 1) + 1;
  const padded = dim + (settings.pad[2 * axis] as number) + (settings.pad[2 * axis + 1] as number);
  return Math.floor((padded - reach) / stride) + 1;
}

/** The declared output of a convolution, checked against input, kernel, bias and settings. */
export function convOutput(context: OperationContext, settings: ConvSettings): Value {
  const [x, weight, bias] = [context.value('x'), context.value('weight'), context.optional('bias')];
  floats(context, x, weight, ...(bias ? [bias] : []));
  const { groups } = settings;
  const channels = (weight.shape[1] as number) * groups;
  const filters = weight.shape[0] as number;
  if (weight.shape.length !== x.shape.length || channels !== x.shape[1] || filters % groups !== 0) {
    context.misshapen(`a kernel for ${shapeText(x.shape)} in ${groups} groups`, shapeText(weight.shape));
  }
  if (bias && shapeText(bias.shape) !== shapeText([filters])) {
    context.misshapen(`a bias of shape [${filters}]`, shapeText(bias.shape));
  }
  const spatial = x.shape
    .slice(2)
    .map((dim, axis) => convLength(dim, weight.shape[axis + 2] as number, axis, settings));
  return context.expectOutput(0, [x.shape[0] as number, filters, ...spatial], 'float32');
}

function emitConv(context: OperationContext): void {
  const { forms, graph } = context;
  const [x, weight, bias] = [context.value('x'), context.value('weight'), context.optional('bias')];
  const rank = x.shape.length - 2;
  if (rank < 1) context.misshapen('a tensor of rank 3 to 5', shapeText(x.shape));
  const settings = convSettings(context, rank);
  const output = convOutput(context, settings);
  const begin = settings.strides.map((_, axis) => settings.pad[2 * axis] as number);
  const end = settings.strides.map((_, axis) => settings.pad[2 * axis + 1] as number);
  const inputs = [x, weight, ...(bias ? [bias] : [])].map((value) => forms.get(value));
  const pads = settings.padType === 'custom' ? { pads: { ints: [...begin, ...end] } } : {};
  const name = graph.node('Conv', inputs, {
    auto_pad: { string: AUTO_PAD[settings.padType] as string },
    dilations: { ints: settings.dilations },
    group: { int: settings.groups },
    kernel_shape: { ints: weight.shape.slice(2) },
    strides: { ints: settings.strides },
    ...pads,
  });
  forms.set(output, 'full', name);
}

/** The shape of a batched matrix product, after checking that the inner dimensions agree. */
function productShape(context: OperationContext, x: Value, y: Value, flipX: boolean, flipY: boolean): number[] {
  if (x.shape.length < 2 || y.shape.length < 2) context.unsupported('tensors of rank 2 and more', 'a vector');
  const [rows, inner] = flipX ? [x.shape.at(-1), x.shape.at(-2)] : [x.shape.at(-2), x.shape.at(-1)];
  const [other, columns] = flipY ? [y.shape.at(-1), y.shape.at(-2)] : [y.shape.at(-2), y.shape.at(-1)];
  const batch = broadcast(x.shape.slice(0, -2), y.shape.slice(0, -2));
  if (!batch || inner !== other) {
    return context.misshapen('matrices that go together', `${shapeText(x.shape)} and ${shapeText(y.shape)}`);
  }
  return [...batch, rows as number, columns as number];
}

function matrixProduct(context: OperationContext, x: Value, y: Value, flipX: boolean, flipY: boolean) {
  floats(context, x, y);
  const shape = productShape(context, x, y, flipX, flipY);
  const inputs = [context.forms.get(x), context.forms.get(y)];
  const name =
    flipX || flipY
      ? context.graph.node('FusedMatMul', inputs, { transA: { int: Number(flipX) }, transB: { int: Number(flipY) } })
      : context.graph.node('MatMul', inputs);
  return { name, shape };
}

function emitMatmul(context: OperationContext): void {
  const [flipX, flipY] = [context.flag('transpose_x'), context.flag('transpose_y')];
  const { name, shape } = matrixProduct(context, context.value('x'), context.value('y'), flipX, flipY);
  context.produce(name, shape, 'float32');
}

/** `weight` is [outputs, inputs]. */
function emitLinear(context: OperationContext): void {
  const bias = context.optional('bias');
  const { name, shape } = matrixProduct(context, context.value('x'), context.value('weight'), false, true);
  if (bias) {
    floats(context, bias);
    if (shapeText(bias.shape) !== shapeText(shape.slice(-1))) {
      context.misshapen(`a bias of shape ${shapeText(shape.slice(-1))}`, shapeText(bias.shape));
    }
  }
  const output = bias ? context.graph.node('Add', [name, context.forms.get(bias)]) : name;
  context.produce(output, shape, 'float32');
}

const EQUATION = /^([a-z]+),([a-z]+)->([a-z]+)$/;

/** The letters of an einsum equation, and the declared output, checked against both operands. */
function einsumParts(context: OperationContext): { letters: [string, string, string]; values: [Value, Value] } {
  const equation = context.text('equation', '').replaceAll(' ', '');
  const match = EQUATION.exec(equation);
  const values = context.list('values');
  if (!match || values.length !== 2) return context.unsupported('an equation of two operands', equation);
  const letters = match.slice(1) as [string, string, string];
  const dims = new Map<string, number>();
  for (const [index, value] of values.entries()) {
    floats(context, value);
    const names = letters[index] as string;
    if (names.length !== value.shape.length)
      context.misshapen(`rank ${names.length} for ${names}`, shapeText(value.shape));
    for (const [axis, letter] of [...names].entries()) {
      const dim = value.shape[axis] as number;
      if ((dims.get(letter) ?? dim) !== dim)
        context.misshapen(`one size for ${letter}`, `${dims.get(letter)} and ${dim}`);
      dims.set(letter, dim);
    }
  }
  const shape = [...letters[2]].map((letter) => dims.get(letter) ?? context.misshapen('known letters', equation));
  context.expectOutput(0, shape, 'float32');
  return { letters, values: values as unknown as [Value, Value] };
}

function emitEinsum(context: OperationContext): void {
  const { letters, values } = einsumParts(context);
  const [x, y, out] = letters;
  const inputs = values.map((value) => context.forms.get(value));
  const name = context.graph.node('Einsum', inputs, { equation: { string: `${x},${y}->${out}` } });
  context.forms.set(context.output(), 'full', name);
}

/** Operations that multiply matrices. */
export const LINEAR: Readonly<Record<string, Emit>> = {
  conv: emitConv,
  einsum: emitEinsum,
  linear: emitLinear,
  matmul: emitMatmul,
};
