import { computeDtype } from './constants.js';
import type { OnnxGraph } from './onnx-graph.js';
import type { OnnxDtype } from './onnx-proto.js';
import type { Step } from './program.js';
import { StepReader } from './reader.js';
import type { Form, Forms, Value } from './values.js';

/** What one operation is translated with: its operands and the graph under construction. */
export class OperationContext extends StepReader {
  readonly graph: OnnxGraph;
  readonly forms: Forms;

  constructor(step: Step, graph: OnnxGraph, forms: Forms) {
    super(step);
    this.graph = graph;
    this.forms = forms;
  }

  override optional(name: string): Value | undefined {
    const value = super.optional(name);
    if (value && computeDtype(value.dtype) === undefined) {
      this.unsupported(`numbers to compute with for "${name}"`, value.dtype);
    }
    return value;
  }

  /** Records that a node computes an output, after checking the output's declaration. */
  produce(name: string, shape: readonly number[], dtype: OnnxDtype, index = 0, form: Form = 'full'): void {
    this.forms.set(this.expectOutput(index, shape, dtype), form, name);
  }
}
