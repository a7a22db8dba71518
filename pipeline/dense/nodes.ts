import type { OnnxAttribute, OnnxDtype, OnnxNode } from '../../runtime/mil/onnx-proto.js';

/** A float32 weight of the checkpoint by its name there. */
export interface WeightTensor {
  readonly name: string;
  readonly dims: readonly number[];
}

/** First row of a weight that is meant, and the row after the last one. */
export type Rows = readonly [from: number, end: number];

/** An initializer over a weight's bytes: all of it, or some of its rows. */
export interface WeightView extends WeightTensor {
  readonly of: WeightTensor;
  readonly firstRow: number;
}

/** A constant that is computed; its bytes are little-endian. */
export interface SmallTensor extends WeightTensor {
  readonly dtype: OnnxDtype;
  readonly data: Uint8Array;
}

type Attributes = Readonly<Record<string, OnnxAttribute>>;

/** Operators of ONNX Runtime's own set. */
const CONTRIB: ReadonlySet<string> = new Set(['FusedMatMul', 'MultiHeadAttention', 'RotaryEmbedding']);

/** Collects the nodes, weights and constants of one graph; names tell the layer and the operator. */
export class DenseNodes {
  readonly nodes: OnnxNode[] = [];
  readonly views: WeightView[] = [];
  readonly constants: SmallTensor[] = [];
  private readonly stored = new Map<string, WeightTensor>();
  private readonly known = new Set<string>();
  private readonly counts = new Map<string, number>();
  private scope = 'graph';

  /** The part of the model that the next nodes belong to. */
  enter(scope: string): void {
    this.scope = scope;
  }

  /** The weights that the graph reads, each once, in the order in which it first does. */
  get weights(): readonly WeightTensor[] {
    return [...this.stored.values()];
  }

  /** Adds a node and returns the name of its output. */
  node(op: string, inputs: readonly string[], attributes: Attributes = {}): string {
    const base = `${this.scope}/${op}`;
    const number = (this.counts.get(base) ?? 0) + 1;
    this.counts.set(base, number);
    const name = number === 1 ? base : `${base}.${number}`;
    const domain = CONTRIB.has(op) ? { domain: 'com.microsoft' } : {};
    this.nodes.push({ op, ...domain, name, inputs, outputs: [name], attributes });
    return name;
  }

  /** Gives the graph an output of this name. */
  publish(value: string, name: string): void {
    this.nodes.push({ op: 'Identity', name: `${name}/Identity`, inputs: [value], outputs: [name], attributes: {} });
  }

  /** A weight of the checkpoint, or some of its rows. */
  weight(name: string, dims: readonly number[], rows: Rows = [0, dims[0]!]): string {
    const of = this.stored.get(name) ?? { name, dims };
    this.stored.set(name, of);
    const [firstRow, end] = rows;
    const count = end - firstRow;
    const view = count === dims[0] ? name : `${name}[${firstRow}:${end}]`;
    if (!this.known.has(view)) this.views.push({ name: view, dims: [count, ...dims.slice(1)], of, firstRow });
    this.known.add(view);
    return view;
  }

  /** A one-dimensional int64 constant, or a scalar. */
  int64(value: number | readonly number[]): string {
    const list = typeof value === 'number' ? [value] : value;
    const dims = typeof value === 'number' ? [] : [list.length];
    return this.constant(`int64:${dims.length}:${list.join()}`, 'int64', dims, BigInt64Array.from(list, BigInt));
  }

  /** A float32 constant. */
  float32(name: string, dims: readonly number[], values: Float32Array): string {
    return this.constant(name, 'float32', dims, values);
  }

  private constant(name: string, dtype: OnnxDtype, dims: readonly number[], values: ArrayBufferView): string {
    const data = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    if (!this.known.has(name)) this.constants.push({ name, dtype, dims, data });
    this.known.add(name);
    return name;
  }
}
