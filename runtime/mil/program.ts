import { MilError } from '../errors.js';
import type { MilArgument, MilFunction, MilOperation, MilProgram, MilValue, MilVariable } from './ast.js';
import type { BlobFiles } from './blobs.js';
import { type Constant, computeDtype, constantOf } from './constants.js';
import { staticShape, typeText } from './types.js';
import type { Value } from './values.js';

/** An argument after its names are looked up. */
export type Operand =
  | { readonly kind: 'value'; readonly value: Value }
  | { readonly kind: 'list'; readonly values: readonly Value[] }
  | { readonly kind: 'text'; readonly text: string };

/** One operation that computes something, with its operands. */
export interface Step {
  readonly op: string;
  readonly operands: ReadonlyMap<string, Operand>;
  readonly outputs: readonly Value[];
  /** `<file>:<line>:<column>`; finding it takes a pass over the text. */
  readonly where: () => string;
}

/** One function whose names, types and constants are checked. */
export interface ResolvedProgram {
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
  readonly steps: readonly Step[];
  /** How often each operation occurs in the function, constants included. */
  readonly operations: ReadonlyMap<string, number>;
}

/** Which operations exist, and how constant expressions are folded. */
export interface OperationNames {
  readonly known: readonly string[];
  has(op: string): boolean;
  /** The constant a `constexpr_*` operation stands for; undefined for operations that run in the graph. */
  fold(step: Step): Constant | undefined;
}

/** Most elements one tensor of the program may have. */
const MAX_ELEMENTS = 2 ** 29;

class Resolver {
  private readonly names = new Map<string, Operand>();
  private readonly program: MilProgram;
  private readonly files: BlobFiles;
  private readonly table: OperationNames;

  constructor(program: MilProgram, files: BlobFiles, table: OperationNames) {
    this.program = program;
    this.files = files;
    this.table = table;
  }

  resolve(fn: MilFunction): ResolvedProgram {
    const where = () => `function ${fn.name}`;
    const inputs = fn.inputs.map((input) => this.define(this.variable(input, where), where));
    const operations = new Map<string, number>();
    const steps: Step[] = [];
    for (const operation of fn.operations) {
      operations.set(operation.op, (operations.get(operation.op) ?? 0) + 1);
      const step = this.operation(operation);
      if (step) steps.push(step);
    }
    const outputs = fn.outputs.map((name) => this.output(name, where));
    return { inputs, outputs, steps, operations };
  }

  private operation(operation: MilOperation): Step | undefined {
    const where = () => this.program.locate(operation.offset);
    if (operation.op === 'const') {
      this.constant(operation, where);
      return undefined;
    }
    if (!this.table.has(operation.op)) this.unsupported(operation, where);
    const operands = new Map<string, Operand>();
    for (const [name, argument] of operation.args) operands.set(name, this.operand(argument, where));
    for (const [name, value] of operation.attributes) operands.set(name, this.literal(value, where, name));
    const outputs = operation.outputs.map((output) => this.variable(output, where));
    const step: Step = { op: operation.op, operands, outputs, where };
    const folded = this.table.fold(step);
    if (folded) {
      this.define({ ...(outputs[0] as Value), constant: folded }, where);
      return undefined;
    }
    for (const output of outputs) this.define(output, where);
    return step;
  }

  private unsupported(operation: MilOperation, at: () => string): never {
    const where = at();
    const output = operation.outputs[0]?.name;
    const known = this.table.known.join(', ');
    throw new MilError(
      'MIL_UNSUPPORTED',
      `${where}: operation "${operation.op}" (output "${output}") is not one the portable executor runs; it knows ${known}`,
      { expected: this.table.known, found: operation.op, where, hint: 'Run this artifact with Core ML on a Mac.' },
    );
  }

  private constant(operation: MilOperation, where: () => string): void {
    const output = operation.outputs[0] as MilVariable;
    const value = operation.attributes.get('val');
    if (!value || operation.outputs.length !== 1) this.syntax(where, 'one output and a "val"', 'another const');
    if (typeText(value.type) !== typeText(output.type)) {
      this.syntax(where, typeText(output.type), `a value of type ${typeText(value.type)}`);
    }
    const operand = this.literal(value, where, output.name);
    if (operand.kind === 'value') this.define({ ...operand.value, name: output.name }, where);
    else this.bind(output.name, operand, where);
  }

  private literal(value: MilValue, where: () => string, name: string): Operand {
    if (value.kind === 'strings' && value.data.length === 1) return { kind: 'text', text: value.data[0] as string };
    const constant = constantOf(value, this.files, where);
    return { kind: 'value', value: { name, dtype: constant.dtype, shape: constant.shape, constant } };
  }

  private operand(argument: MilArgument, where: () => string): Operand {
    if (argument.kind === 'value') return this.literal(argument.value, where, 'a literal');
    if (argument.kind === 'name') return this.lookup(argument.name, where);
    const values = argument.items.map((item) => {
      const operand = this.operand(item, where);
      return operand.kind === 'value' ? operand.value : this.syntax(where, 'a list of tensors', `a ${operand.kind}`);
    });
    return { kind: 'list', values };
  }

  private lookup(name: string, where: () => string): Operand {
    return this.names.get(name) ?? this.syntax(where, 'a name defined before', `"${name}"`);
  }

  private output(name: string, where: () => string): Value {
    const operand = this.lookup(name, where);
    return operand.kind === 'value' ? operand.value : this.syntax(where, 'a tensor', `"${name}"`);
  }

  private variable(variable: MilVariable, at: () => string): Value {
    const { name, type } = variable;
    const shape = type.kind === 'tensor' ? staticShape(type) : undefined;
    if (type.kind === 'opaque' || !shape || !computable(type.dtype)) {
      const where = at();
      throw new MilError('MIL_UNSUPPORTED', `${where}: "${name}" has type ${typeText(type)}`, {
        expected: 'a tensor of numbers with a fixed shape',
        found: typeText(type),
        where,
        hint: 'Convert the model with fixed shapes, or run it with Core ML on a Mac.',
      });
    }
    if (shape.reduce((count, dim) => count * Math.max(dim, 1), 1) > MAX_ELEMENTS) {
      const where = at();
      throw new MilError('MIL_SHAPE', `${where}: "${name}" has more than ${MAX_ELEMENTS} elements`, {
        expected: `at most ${MAX_ELEMENTS} elements`,
        found: typeText(type),
        where,
      });
    }
    return { name, dtype: type.dtype, shape };
  }

  private define(value: Value, where: () => string): Value {
    this.bind(value.name, { kind: 'value', value }, where);
    return value;
  }

  private bind(name: string, operand: Operand, where: () => string): void {
    if (this.names.has(name)) this.syntax(where, 'every name defined once', `"${name}" again`);
    this.names.set(name, operand);
  }

  private syntax(at: () => string, expected: string, found: string): never {
    const where = at();
    throw new MilError('MIL_SYNTAX', `${where}: expected ${expected}, found ${found}`, { expected, found, where });
  }
}

function computable(dtype: Value['dtype']): boolean {
  return computeDtype(dtype) !== undefined;
}

function mainFunction(program: MilProgram): MilFunction {
  const { functions } = program;
  const main = functions.find((fn) => fn.name === 'main') ?? (functions.length === 1 ? functions[0] : undefined);
  if (main) return main;
  const names = functions.map((fn) => fn.name);
  throw new MilError(
    'MIL_UNSUPPORTED',
    `the program has no function "main", only ${names.join(', ') || 'none at all'}`,
    {
      expected: 'main',
      found: names,
      where: 'model.mil',
      hint: 'Compile a model with one function.',
    },
  );
}

/**
 * Looks up every name of the program's `main` function and checks its types, constants and weight records.
 *
 * @throws MilError `MIL_SYNTAX` for names that are missing, repeated or misused; `MIL_UNSUPPORTED` for operations
 *   outside the table, open shapes and programs without one main function; `MIL_BLOB`; `MIL_SHAPE` for huge tensors.
 */
export function resolveProgram(program: MilProgram, files: BlobFiles, table: OperationNames): ResolvedProgram {
  return new Resolver(program, files, table).resolve(mainFunction(program));
}
