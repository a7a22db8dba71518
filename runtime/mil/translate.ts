import { MilError } from '../errors.js';
import type { MilDtype, MilProgram } from './ast.js';
import type { BlobFiles } from './blobs.js';
import { computeDtype } from './constants.js';
import { OperationContext } from './context.js';
import { matchAttention } from './fuse/attention.js';
import { emitFused } from './fuse/emit.js';
import { MATRIX } from './fuse/matrix.js';
import { matchNorm } from './fuse/norm.js';
import { eachInput, isFused, Links, liveSteps, type PlannedStep } from './fuse/plan.js';
import { OnnxGraph, type PlannedTensor } from './onnx-graph.js';
import type { OnnxDtype, OnnxNode, OnnxValueInfo } from './onnx-proto.js';
import { emitterOf, OPERATION_NAMES } from './ops/table.js';
import { type ResolvedProgram, resolveProgram, type Step } from './program.js';
import { Forms, type Value } from './values.js';

/** One input or output of a model; whatever its type, float32 elements carry it. */
export interface TensorSpec {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: MilDtype;
}

/** A program as an ONNX graph whose weights still lie in the model folder. */
export interface Translation {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  /** How often each operation occurs in the MIL program, constants included. */
  readonly operations: Readonly<Record<string, number>>;
  /** The operations that compute: their type, and their first output as name. */
  readonly computed: readonly { readonly name: string; readonly op: string }[];
  /** Element types of the float constants, as stored. */
  readonly weightDtypes: ReadonlySet<string>;
  readonly nodes: readonly OnnxNode[];
  readonly tensors: readonly PlannedTensor[];
  readonly graphInputs: readonly OnnxValueInfo[];
  readonly graphOutputs: readonly OnnxValueInfo[];
  /** Node name to the names of the operations it computes. */
  readonly coverage: ReadonlyMap<string, readonly string[]>;
}

function nameOf(step: Step): string {
  return step.outputs[0]?.name ?? '';
}

function weightDtypes(steps: readonly Step[]): Set<string> {
  const dtypes = new Set<string>();
  for (const step of steps) {
    eachInput(step, ({ constant }) => {
      if (constant?.dtype.startsWith('fp')) dtypes.add(constant.dtype);
    });
  }
  return dtypes;
}

function planned(program: ResolvedProgram): PlannedStep[] {
  const links = new Links(program);
  const fused = new Map<Value, PlannedStep>();
  for (const step of program.steps) {
    const match = matchAttention(links, step) ?? matchNorm(links, step);
    if (match) fused.set(match.outputs[0], match);
  }
  const steps = program.steps.map((step) => fused.get(step.outputs[0] as Value) ?? step);
  return liveSteps(steps, program.outputs);
}

class Translator {
  private readonly graph = new OnnxGraph();
  private readonly forms = new Forms(this.graph);
  private readonly program: ResolvedProgram;

  constructor(program: ResolvedProgram) {
    this.program = program;
  }

  /** An input arrives as float32 and is brought to what its declared type holds. */
  private input(value: Value): void {
    const { graph } = this;
    graph.cover([value.name]);
    const dtype = computeDtype(value.dtype) as OnnxDtype;
    let name = value.name;
    if (value.dtype === 'fp16') name = graph.cast(graph.cast(name, 'float16'), 'float32');
    else if (dtype !== 'float32') name = graph.cast(name, dtype);
    this.forms.set(value, 'full', name);
  }

  /** An output leaves as float32 elements that its declared type holds. */
  private output(value: Value): void {
    const { graph } = this;
    graph.cover([value.name]);
    const name = this.forms.get(value);
    if (value.dtype === 'fp16') graph.publish(graph.cast(name, 'float16'), 'float16', value.name);
    else graph.publish(name, computeDtype(value.dtype) as OnnxDtype, value.name);
  }

  private step(step: PlannedStep, live: ReadonlySet<PlannedStep>, matrices: boolean): void {
    if (isFused(step)) {
      this.graph.cover(step.parts.filter((part) => !live.has(part)).map(nameOf));
      emitFused(this.graph, this.forms, step);
      return;
    }
    this.graph.cover([nameOf(step)]);
    const context = new OperationContext(step, this.graph, this.forms);
    const asMatrix = matrices && Object.hasOwn(MATRIX, step.op) && MATRIX[step.op]?.(context);
    if (!asMatrix) emitterOf(step.op)(context);
  }

  run(steps: readonly PlannedStep[], matrices: boolean): OnnxGraph {
    const live = new Set(steps);
    for (const value of this.program.inputs) this.input(value);
    for (const step of steps) this.step(step, live, matrices);
    for (const value of this.program.outputs) this.output(value);
    return this.graph;
  }
}

function spec({ name, shape, dtype }: Value): TensorSpec {
  return { name, shape, dtype };
}

function info({ name, shape }: Value): OnnxValueInfo {
  return { name, dtype: 'float32', dims: shape };
}

/** Names reach the outside once each, so an input can't also be an output, nor an output be given twice. */
function checkBorder(program: ResolvedProgram): void {
  const names = [...program.inputs, ...program.outputs].map((value) => value.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined && program.outputs.length > 0) return;
  throw new MilError('MIL_UNSUPPORTED', `the program's inputs and outputs are ${names.join(', ')}`, {
    expected: 'at least one output, and every name once',
    found: twice ?? 'no output',
    where: 'model.mil',
  });
}

/**
 * Translates the program's `main` function. With `fuse`, attention is computed for all heads at once and activations
 * lie as matrices; without, every operation becomes its own node or nodes. Both compute in float32; float16 weights
 * are widened once, and float16 inputs and outputs are rounded to float16 at the border.
 *
 * @throws MilError as `resolveProgram`; `MIL_SHAPE`, `MIL_SYNTAX` or `MIL_UNSUPPORTED` for an operation whose operands
 *   don't fit it, which is checked for every operation, fused or not.
 */
export function translate(program: MilProgram, files: BlobFiles, fuse: boolean): Translation {
  const resolved = resolveProgram(program, files, OPERATION_NAMES);
  checkBorder(resolved);
  const checked = new Translator(resolved).run(resolved.steps, false);
  const graph = fuse ? new Translator(resolved).run(planned(resolved), true) : checked;
  return {
    inputs: resolved.inputs.map(spec),
    outputs: resolved.outputs.map(spec),
    operations: Object.fromEntries(resolved.operations),
    computed: resolved.steps.map((step) => ({ name: nameOf(step), op: step.op })),
    weightDtypes: weightDtypes(resolved.steps),
    nodes: graph.nodes,
    tensors: graph.tensors,
    graphInputs: resolved.inputs.map(info),
    graphOutputs: resolved.outputs.map(info),
    coverage: graph.coverage,
  };
}
