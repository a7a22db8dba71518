import type { OperationContext } from '../context.js';
import type { Emit } from './elementwise.js';

/** One axis of a slice, as ONNX takes it, and how many elements it keeps. */
interface Range {
  readonly start: number;
  readonly end: number;
  readonly step: number;
  readonly size: number;
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

/** Begin and end count from the back when negative and stop at the ends, as in Python; a mask means "all the way". */
function range(dim: number, begin: number | undefined, end: number | undefined, step: number): Range {
  const low = step > 0 ? 0 : -1;
  const high = step > 0 ? dim : dim - 1;
  const place = (at: number) => clamp(at < 0 ? at + dim : at, low, high);
  const start = begin === undefined ? (step > 0 ? 0 : dim - 1) : place(begin);
  const stop = end === undefined ? (step > 0 ? dim : -1) : place(end);
  const size = Math.max(0, Math.ceil((stop - start) / step));
  return { start, end: stop < 0 ? -(dim + 1) : stop, step, size };
}

function slice(context: OperationContext, ranges: readonly Range[], squeezed: readonly number[]): void {
  const { graph } = context;
  const x = context.value('x');
  const inputs = [
    context.forms.get(x),
    graph.int64(ranges.map((r) => r.start)),
    graph.int64(ranges.map((r) => r.end)),
    graph.int64(ranges.map((_, axis) => axis)),
    graph.int64(ranges.map((r) => r.step)),
  ];
  const name = graph.node('Slice', inputs);
  const shape = ranges.map((r) => r.size).filter((_, axis) => !squeezed.includes(axis));
  const output = squeezed.length === 0 ? name : graph.node('Reshape', [name, graph.int64(shape)]);
  context.produce(output, shape, context.dtype(x));
}

function emitSliceByIndex(context: OperationContext): void {
  const { shape } = context.value('x');
  const [begin, end] = [context.numbers('begin'), context.numbers('end')];
  const stride = context.optionalNumbers('stride') ?? shape.map(() => 1);
  const mask = (name: string) => context.optionalNumbers(name) ?? shape.map(() => 0);
  const [beginMask, endMask, squeezeMask] = [mask('begin_mask'), mask('end_mask'), mask('squeeze_mask')];
  const settings = [begin, end, stride, beginMask, endMask, squeezeMask];
  if (settings.some((setting) => setting.length !== shape.length) || stride.includes(0)) {
    context.misshapen(`${shape.length} numbers in each setting, strides not 0`, JSON.stringify(settings));
  }
  const squeezed = shape.flatMap((_, axis) => (squeezeMask[axis] ? [axis] : []));
  const ranges = shape.map((dim, axis) => {
    const from = beginMask[axis] ? undefined : begin[axis];
    if (!squeezeMask[axis]) return range(dim, from, endMask[axis] ? undefined : end[axis], stride[axis] as number);
    const only = range(dim, from, undefined, 1);
    return { ...only, end: only.start + 1, size: Math.min(1, only.size) };
  });
  slice(context, ranges, squeezed);
}

/** A size of -1 means "to the end". */
function emitSliceBySize(context: OperationContext): void {
  const { shape } = context.value('x');
  const [begin, size] = [context.numbers('begin'), context.numbers('size')];
  const ranges = shape.map((dim, axis) => {
    const start = (begin[axis] ?? 0) < 0 ? (begin[axis] as number) + dim : (begin[axis] ?? 0);
    const count = size[axis] === -1 ? dim - start : (size[axis] ?? 0);
    return { start, end: start + count, step: 1, size: count };
  });
  const inside = ranges.every((r, axis) => r.start >= 0 && r.size >= 0 && r.end <= (shape[axis] as number));
  if (!inside || begin.length !== shape.length || size.length !== shape.length) {
    context.misshapen(`a part of a tensor of rank ${shape.length}`, `begin ${begin}, size ${size}`);
  }
  slice(context, ranges, []);
}

/** Operations that keep a part of a tensor. */
export const SLICE: Readonly<Record<string, Emit>> = {
  slice_by_index: emitSliceByIndex,
  slice_by_size: emitSliceBySize,
};
