import { MilError } from '../errors.js';
import { computeDtype, constantElements } from './constants.js';
import type { OnnxDtype } from './onnx-proto.js';
import type { Step } from './program.js';
import { elementCount, shapeText } from './types.js';
import type { Value } from './values.js';

/** Most elements an axis list, a permutation or another setting of an operation may have. */
const MAX_SETTING = 4096;

/** Reads the operands of one operation, and refuses them by its name and place. */
export class StepReader {
  readonly step: Step;

  constructor(step: Step) {
    this.step = step;
  }

  private get title(): string {
    return `${this.step.where()}: ${this.step.op} (output "${this.step.outputs[0]?.name}")`;
  }

  private refuse(code: 'MIL_SYNTAX' | 'MIL_SHAPE' | 'MIL_UNSUPPORTED', expected: string, found: string): never {
    const where = this.step.where();
    throw new MilError(code, `${this.title}: expected ${expected}, found ${found}`, { expected, found, where });
  }

  /** The operation lacks an operand or has one of the wrong kind. */
  malformed(expected: string, found: string): never {
    return this.refuse('MIL_SYNTAX', expected, found);
  }

  /** The operands, or the declared output, have shapes or types that the operation can't have. */
  misshapen(expected: string, found: string): never {
    return this.refuse('MIL_SHAPE', expected, found);
  }

  /** The operation is known, but not with these settings. */
  unsupported(expected: string, found: string): never {
    return this.refuse('MIL_UNSUPPORTED', expected, found);
  }

  optional(name: string): Value | undefined {
    const operand = this.step.operands.get(name);
    if (operand === undefined) return undefined;
    if (operand.kind !== 'value') this.malformed(`a tensor for "${name}"`, `a ${operand.kind}`);
    return operand.value;
  }

  value(name: string): Value {
    return this.optional(name) ?? this.malformed(`an operand "${name}"`, 'none');
  }

  /** The tensors of a list; MIL writes a list of one without brackets. */
  list(name: string): readonly Value[] {
    const operand = this.step.operands.get(name);
    if (operand?.kind === 'list' && operand.values.length > 0) return operand.values;
    return [this.value(name)];
  }

  text(name: string, fallback: string): string {
    const operand = this.step.operands.get(name);
    if (operand === undefined) return fallback;
    return operand.kind === 'text' ? operand.text : this.malformed(`a string for "${name}"`, `a ${operand.kind}`);
  }

  /** The numbers of a constant setting; undefined when the operation has none of this name. */
  optionalNumbers(name: string): number[] | undefined {
    const value = this.optional(name);
    if (value === undefined) return undefined;
    if (!value.constant) this.unsupported(`a constant for "${name}"`, `"${value.name}", which is computed`);
    if (elementCount(value.shape) > MAX_SETTING)
      this.misshapen(`at most ${MAX_SETTING} numbers`, shapeText(value.shape));
    return Array.from(constantElements(value.constant));
  }

  numbers(name: string): number[] {
    return this.optionalNumbers(name) ?? this.malformed(`an operand "${name}"`, 'none');
  }

  number(name: string, fallback: number): number {
    const numbers = this.optionalNumbers(name) ?? [fallback];
    return numbers.length === 1 ? (numbers[0] as number) : this.misshapen(`one number for "${name}"`, String(numbers));
  }

  flag(name: string): boolean {
    return this.number(name, 0) !== 0;
  }

  /** An axis of a tensor of this rank, counted from the front. */
  axis(axis: number, rank: number): number {
    const positive = axis < 0 ? axis + rank : axis;
    if (Number.isInteger(positive) && positive >= 0 && positive < rank) return positive;
    return this.misshapen(`an axis of a tensor of rank ${rank}`, String(axis));
  }

  /** The axes in ascending order; each at most once. */
  axes(axes: readonly number[], rank: number): number[] {
    const sorted = axes.map((axis) => this.axis(axis, rank)).sort((a, b) => a - b);
    if (new Set(sorted).size !== sorted.length) this.misshapen('each axis once', String(axes));
    return sorted;
  }

  /** The ONNX type of a value. */
  dtype(value: Value): OnnxDtype {
    return computeDtype(value.dtype) as OnnxDtype;
  }

  output(index = 0): Value {
    return this.step.outputs[index] ?? this.malformed(`an output ${index}`, `${this.step.outputs.length} outputs`);
  }

  /** Refuses the operation unless its output is declared with this shape and type. */
  expectOutput(index: number, shape: readonly number[], dtype: OnnxDtype): Value {
    const output = this.output(index);
    if (shapeText(output.shape) !== shapeText(shape)) this.misshapen(shapeText(shape), shapeText(output.shape));
    if (this.dtype(output) !== dtype) this.misshapen(`an output of type ${dtype}`, output.dtype);
    return output;
  }
}

/** The shape of an element-wise result; undefined when the shapes don't go together. */
export function broadcast(a: readonly number[], b: readonly number[]): number[] | undefined {
  const rank = Math.max(a.length, b.length);
  const shape: number[] = [];
  for (let i = 0; i < rank; i++) {
    const x = a[a.length - rank + i] ?? 1;
    const y = b[b.length - rank + i] ?? 1;
    if (x !== y && x !== 1 && y !== 1) return undefined;
    shape.push(x === 1 ? y : x);
  }
  return shape;
}
