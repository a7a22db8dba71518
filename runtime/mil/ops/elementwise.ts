import type { OperationContext } from '../context.js';
import type { OnnxDtype } from '../onnx-proto.js';
import { broadcast } from '../reader.js';
import { shapeText } from '../types.js';
import type { Value } from '../values.js';

/** A translation of one operation in the shapes MIL declares. */
export type Emit = (context: OperationContext) => void;

/** Adds the nodes of an element-wise function to one input name and returns the output's name. */
export type Unary = (context: OperationContext, x: string) => string;

const GELU_MODES: Readonly<Record<string, string>> = { EXACT: 'none', TANH_APPROXIMATION: 'tanh' };

function plain(op: string): Unary {
  return ({ graph }, x) => graph.node(op, [x]);
}

/** `epsilon` is added before the function; Core ML's defaults are the operation's own. */
function withEpsilon(fallback: number, finish: Unary): Unary {
  return (context, x) => {
    const epsilon = context.number('epsilon', fallback);
    const shifted = epsilon === 0 ? x : context.graph.node('Add', [x, context.graph.float(epsilon)]);
    return finish(context, shifted);
  };
}

function attribute(op: string, name: string, setting: string, fallback: number): Unary {
  return (context, x) => context.graph.node(op, [x], { [name]: { float: context.number(setting, fallback) } });
}

/** Element-wise functions of one float tensor `x`. */
export const UNARY: Readonly<Record<string, Unary>> = {
  abs: plain('Abs'),
  ceil: plain('Ceil'),
  clip: (context, x) => {
    const bounds = [
      context.number('alpha', Number.NEGATIVE_INFINITY),
      context.number('beta', Number.POSITIVE_INFINITY),
    ];
    return context.graph.node('Clip', [x, ...bounds.map((bound) => context.graph.float(bound))]);
  },
  cos: plain('Cos'),
  elu: attribute('Elu', 'alpha', 'alpha', 1),
  erf: plain('Erf'),
  exp: plain('Exp'),
  floor: plain('Floor'),
  gelu: (context, x) => {
    const mode = context.text('mode', 'EXACT');
    const approximate = GELU_MODES[mode] ?? context.unsupported(Object.keys(GELU_MODES).join(' or '), mode);
    return context.graph.node('Gelu', [x], { approximate: { string: approximate } });
  },
  inverse: withEpsilon(1e-4, plain('Reciprocal')),
  leaky_relu: attribute('LeakyRelu', 'alpha', 'alpha', 0.01),
  log: withEpsilon(1e-45, plain('Log')),
  relu: plain('Relu'),
  relu6: ({ graph }, x) => graph.node('Clip', [x, graph.float(0), graph.float(6)]),
  round: plain('Round'),
  rsqrt: withEpsilon(1e-12, ({ graph }, x) => graph.node('Reciprocal', [graph.node('Sqrt', [x])])),
  sigmoid: plain('Sigmoid'),
  sign: plain('Sign'),
  silu: ({ graph }, x) => graph.node('Mul', [x, graph.node('Sigmoid', [x])]),
  sin: plain('Sin'),
  softplus: plain('Softplus'),
  softsign: plain('Softsign'),
  sqrt: plain('Sqrt'),
  square: ({ graph }, x) => graph.node('Mul', [x, x]),
  tanh: plain('Tanh'),
};

type Binary = { readonly op: string; readonly to?: OnnxDtype; readonly on?: OnnxDtype; readonly negate?: boolean };

/** Element-wise functions of `x` and `y`, which are broadcast. */
export const BINARY: Readonly<Record<string, Binary>> = {
  add: { op: 'Add' },
  equal: { op: 'Equal', to: 'bool' },
  greater: { op: 'Greater', to: 'bool' },
  greater_equal: { op: 'GreaterOrEqual', to: 'bool' },
  less: { op: 'Less', to: 'bool' },
  less_equal: { op: 'LessOrEqual', to: 'bool' },
  logical_and: { op: 'And', on: 'bool' },
  logical_or: { op: 'Or', on: 'bool' },
  logical_xor: { op: 'Xor', on: 'bool' },
  maximum: { op: 'Max' },
  minimum: { op: 'Min' },
  mul: { op: 'Mul' },
  not_equal: { op: 'Equal', to: 'bool', negate: true },
  pow: { op: 'Pow' },
  real_div: { op: 'Div', on: 'float32' },
  sub: { op: 'Sub' },
};

/** The declared result of a binary operation, checked against its operands. */
export function binaryOutput(context: OperationContext, x: Value, y: Value, spec: Binary): Value {
  const dtype = context.dtype(x);
  if (dtype !== context.dtype(y)) context.misshapen(`both operands of type ${x.dtype}`, y.dtype);
  if (spec.on && dtype !== spec.on) context.misshapen(`operands of type ${spec.on}`, x.dtype);
  const shape = broadcast(x.shape, y.shape);
  if (!shape) return context.misshapen('shapes that go together', `${shapeText(x.shape)} and ${shapeText(y.shape)}`);
  return context.expectOutput(0, shape, spec.to ?? dtype);
}

export function binaryNode(context: OperationContext, spec: Binary, x: string, y: string): string {
  const name = context.graph.node(spec.op, [x, y]);
  return spec.negate ? context.graph.node('Not', [name]) : name;
}

/** The declared result of a unary operation, checked against its operand. */
export function unaryOutput(context: OperationContext, x: Value): Value {
  if (context.dtype(x) !== 'float32') context.misshapen('a float tensor', x.dtype);
  return context.expectOutput(0, x.shape, 'float32');
}

function emitUnary(unary: Unary): Emit {
  return (context) => {
    const x = context.value('x');
    const output = unaryOutput(context, x);
    context.forms.set(output, 'full', unary(context, context.forms.get(x)));
  };
}

function emitBinary(spec: Binary): Emit {
  return (context) => {
    const [x, y] = [context.value('x'), context.value('y')];
    const output = binaryOutput(context, x, y, spec);
    context.forms.set(output, 'full', binaryNode(context, spec, context.forms.get(x), context.forms.get(y)));
  };
}

/** A cast to fp16 rounds to what a half holds, although the graph goes on in float32. */
function emitCast(context: OperationContext): void {
  const { forms, graph } = context;
  const x = context.value('x');
  const dtype = context.text('dtype', 'none');
  const output = context.output();
  if (output.dtype !== dtype) context.misshapen(`an output of type ${dtype}`, output.dtype);
  const to = context.dtype(output);
  const name = forms.get(x);
  if (dtype === 'fp16') context.produce(graph.cast(graph.cast(name, 'float16'), to), x.shape, to);
  else context.produce(context.dtype(x) === to ? name : graph.cast(name, to), x.shape, to);
}

function emitSelect(context: OperationContext): void {
  const [cond, a, b] = [context.value('cond'), context.value('a'), context.value('b')];
  const branches = broadcast(a.shape, b.shape);
  const together = () =>
    context.misshapen('shapes that go together', [cond, a, b].map((v) => shapeText(v.shape)).join());
  const shape = (branches && broadcast(cond.shape, branches)) ?? together();
  if (context.dtype(cond) !== 'bool') context.misshapen('a bool tensor "cond"', cond.dtype);
  if (context.dtype(a) !== context.dtype(b)) context.misshapen(`both branches of type ${a.dtype}`, b.dtype);
  const name = context.graph.node(
    'Where',
    [cond, a, b].map((value) => context.forms.get(value)),
  );
  context.produce(name, shape, context.dtype(a));
}

function emitNot(context: OperationContext): void {
  const x = context.value('x');
  context.produce(context.graph.node('Not', [context.forms.get(x)]), x.shape, 'bool');
}

function emitIdentity(context: OperationContext): void {
  const x = context.value('x');
  context.produce(context.forms.get(x), x.shape, context.dtype(x));
}

/** Element-wise operations. */
export const ELEMENTWISE: Readonly<Record<string, Emit>> = {
  ...Object.fromEntries(Object.entries(UNARY).map(([name, unary]) => [name, emitUnary(unary)])),
  ...Object.fromEntries(Object.entries(BINARY).map(([name, binary]) => [name, emitBinary(binary)])),
  cast: emitCast,
  identity: emitIdentity,
  logical_not: emitNot,
  select: emitSelect,
};
