import { type Constant, computeDtype, constantElements, elementBytes } from './constants.js';
import { ONNX_DTYPE, type OnnxAttribute, type OnnxDtype, type OnnxNode } from './onnx-proto.js';
import { elementCount } from './types.js';

/** An initializer before it has a place: where its bytes will come from. */
export interface PlannedTensor {
  readonly name: string;
  readonly dtype: OnnxDtype;
  readonly dims: readonly number[];
  readonly byteLength: number;
  blocks(): Iterable<Uint8Array>;
}

type Attributes = Readonly<Record<string, OnnxAttribute>>;

/** ONNX Runtime's own operator set. */
const CONTRIB = 'com.microsoft';

function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** The elements of a [rows, columns] matrix in column-major order. */
function transposed(constant: Constant, rows: number, columns: number): Uint8Array {
  const from = constantElements(constant);
  const to = from.slice();
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) to[c * rows + r] = from[r * columns + c] as number;
  }
  return bytesOf(to);
}

/**
 * Collects the nodes and initializers of one ONNX graph. Every node is named `<MIL output>/<operator>` after the MIL
 * operation it helps to compute, and `coverage` keeps that relation.
 */
export class OnnxGraph {
  readonly nodes: OnnxNode[] = [];
  readonly tensors: PlannedTensor[] = [];
  /** Node name to the first outputs of the MIL operations it computes. */
  readonly coverage = new Map<string, readonly string[]>();
  private readonly names = new Map<string, number>();
  private readonly known = new Map<string, string>();
  private covered: readonly string[] = [];

  /** Says which MIL operations the next nodes compute; the last one names the nodes. */
  cover(outputs: readonly string[]): void {
    this.covered = outputs;
  }

  private fresh(base: string): string {
    const count = this.names.get(base) ?? 0;
    this.names.set(base, count + 1);
    return count === 0 ? base : `${base}.${count + 1}`;
  }

  /** Adds a node with several outputs and returns their names. */
  outputsOf(op: string, inputs: readonly string[], attributes: Attributes, count: number): string[] {
    const name = this.fresh(`${this.covered.at(-1) ?? 'graph'}/${op}`);
    const outputs = Array.from({ length: count }, (_, index) => `${name}:${index}`);
    const domain = CONTRIB_OPS.has(op) ? { domain: CONTRIB } : {};
    this.nodes.push({ op, ...domain, name, inputs, outputs, attributes });
    this.coverage.set(name, this.covered);
    return outputs;
  }

  /** Adds a node and returns the name of its output. */
  node(op: string, inputs: readonly string[], attributes: Attributes = {}): string {
    return this.outputsOf(op, inputs, attributes, 1)[0] as string;
  }

  /** Adds a conversion to another element type. */
  cast(input: string, dtype: OnnxDtype): string {
    return this.node('Cast', [input], { to: { int: ONNX_DTYPE[dtype] } });
  }

  /** Gives the graph a float32 output of this very name, converted from another element type where there is one. */
  publish(input: string, dtype: OnnxDtype, output: string): void {
    const op = dtype === 'float32' ? 'Identity' : 'Cast';
    const attributes: Attributes = dtype === 'float32' ? {} : { to: { int: ONNX_DTYPE.float32 } };
    const name = this.fresh(`${output}/${op}`);
    this.nodes.push({ op, name, inputs: [input], outputs: [output], attributes });
    this.coverage.set(name, this.covered);
  }

  /** The constant as an initializer of these dimensions, which may regroup its own; written once. */
  constant(constant: Constant, dims: readonly number[] = constant.shape): string {
    return this.tensor(`${constant.key}|${dims.join('x')}`, () => ({
      dtype: computeDtype(constant.dtype) as OnnxDtype,
      dims,
      byteLength: elementCount(dims) * elementBytes(constant.dtype),
      *blocks() {
        for (const block of constant.blocks()) yield bytesOf(block);
      },
    }));
  }

  /** The transpose of a constant that is read as a [rows, columns] matrix. */
  transposedConstant(constant: Constant, rows: number, columns: number): string {
    return this.tensor(`${constant.key}|${rows}x${columns}^T`, () => ({
      dtype: computeDtype(constant.dtype) as OnnxDtype,
      dims: [columns, rows],
      byteLength: rows * columns * elementBytes(constant.dtype),
      blocks: () => [transposed(constant, rows, columns)],
    }));
  }

  /** A one-dimensional int64 tensor, as ONNX takes shapes, axes and indices. */
  int64(values: readonly number[]): string {
    return this.tensor(`int64:${values.join()}`, () => {
      const bytes = bytesOf(BigInt64Array.from(values, BigInt));
      return { dtype: 'int64', dims: [values.length], byteLength: bytes.length, blocks: () => [bytes] };
    });
  }

  /** A float32 scalar. */
  float(value: number): string {
    return this.tensor(`float:${Object.is(value, -0) ? '-0' : value}`, () => {
      const bytes = bytesOf(Float32Array.of(value));
      return { dtype: 'float32', dims: [], byteLength: 4, blocks: () => [bytes] };
    });
  }

  private tensor(key: string, plan: () => Omit<PlannedTensor, 'name'>): string {
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const name = `constant:${this.tensors.length}`;
    this.tensors.push({ name, ...plan() });
    this.known.set(key, name);
    return name;
  }
}

const CONTRIB_OPS: ReadonlySet<string> = new Set(['FusedMatMul', 'MultiHeadAttention', 'RotaryEmbedding']);
