import type { MilDtype } from './ast.js';
import type { Constant } from './constants.js';
import type { OnnxGraph } from './onnx-graph.js';

/** A tensor of the program: computed, or known beforehand. */
export interface Value {
  readonly name: string;
  readonly dtype: MilDtype;
  readonly shape: readonly number[];
  readonly constant?: Constant;
}

/**
 * How a value lies in the ONNX graph: `full` has the shape MIL declares. A (1, C, 1, L) value may also lie as a
 * matrix: `rows` is [C, L], `columns` its transpose [L, C].
 */
export type Form = 'full' | 'rows' | 'columns';

/** True for (1, C, 1, L), the shape of every activation of the channel-first graphs. */
export function isMatrix(value: { readonly shape: readonly number[] }): boolean {
  const { shape } = value;
  return shape.length === 4 && shape[0] === 1 && shape[2] === 1;
}

/** C and L of a (1, C, 1, L) value. */
export function matrixDims(value: { readonly shape: readonly number[] }): [number, number] {
  return [value.shape[1] as number, value.shape[3] as number];
}

/** Keeps, for each value, the forms that nodes already compute, and makes others when asked. */
export class Forms {
  private readonly graph: OnnxGraph;
  private readonly made = new Map<Value, Partial<Record<Form, string>>>();

  constructor(graph: OnnxGraph) {
    this.graph = graph;
  }

  /** Records that a node's output is this form of the value. */
  set(value: Value, form: Form, name: string): void {
    const forms = this.made.get(value) ?? {};
    forms[form] = name;
    this.made.set(value, forms);
  }

  /** True when the form exists; constants have every form. */
  has(value: Value, form: Form): boolean {
    return value.constant !== undefined || this.made.get(value)?.[form] !== undefined;
  }

  /** The ONNX name of the value in this form. */
  get(value: Value, form: Form = 'full'): string {
    if (value.constant !== undefined) return this.constant(value, value.constant, form);
    const known = this.made.get(value)?.[form];
    if (known !== undefined) return known;
    const name = this.convert(value, form);
    this.set(value, form, name);
    return name;
  }

  private constant(value: Value, constant: Constant, form: Form): string {
    if (form === 'full') return this.graph.constant(constant);
    const [channels, length] = matrixDims(value);
    if (form === 'rows') return this.graph.constant(constant, [channels, length]);
    if (channels === 1 || length === 1) return this.graph.constant(constant, [length, channels]);
    return this.graph.transposedConstant(constant, channels, length);
  }

  private convert(value: Value, form: Form): string {
    const { graph } = this;
    const forms = this.made.get(value) ?? {};
    if (form === 'full') return graph.node('Reshape', [this.get(value, 'rows'), graph.int64(value.shape)]);
    if (form === 'rows' && forms.columns === undefined) {
      return graph.node('Reshape', [this.get(value, 'full'), graph.int64(matrixDims(value))]);
    }
    const other = this.get(value, form === 'rows' ? 'columns' : 'rows');
    return graph.node('Transpose', [other], { perm: { ints: [1, 0] } });
  }
}
