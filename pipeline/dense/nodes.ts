import type { OnnxAttribute, OnnxDtype, OnnxNode } from '../../runtime/mil/onnx-proto.js';

/** A float32 weight of the checkpoint by its name there, as the graph's initializer of the same name. */
export interface WeightTensor {
  readonly name: string;
  readonly dims: readonly number[];
}

/** A constant that is computed; its bytes are little-endian. */
export interface SmallTensor extends WeightTensor {
  readonly dtype: OnnxDtype;
  readonly data: Uint8Array;
}

type Attributes = Readonly<Record<string, OnnxAttribute>>;

/** Operators of ONNX Runtime's own set. */
const CONTRIB: ReadonlySet<string> = new Set(['FusedMatMul', 'RotaryEmbedding', 'MultiHeadAttention']);

/** Collects the nodes, weights and constants of one graph; names tell the layer and the operator. */
export class DenseNodes {
  readonly nodes: OnnxNode[] = [];
  readonly weights: WeightTensor[] = [];
  readonly constants: SmallTensor[] = [];
  private readonly known = new Set<string>();
  private readonly counts = new Map<string, number>();
  private scope = 'graph';

  /** The part of the model that the next nodes belong to. */
  enter(scope: string): void {
    this.scope = scope;
  }

  /** Adds a node and returns the names of its outputs. */
  outputs(op: string, inputs: readonly string[], count: number, attributes: Attributes = {}): string[] {
    const base = `${this.scope}/${op}`;
    const number = (this.counts.get(base) ?? 0) + 1;
    this.counts.set(base, number);
    const name = number === 1 ? base : `${base}.${number}`;
    const outputs = Array.from({ length: count }, (_, i) => (count === 1 ? name : `${name}:${i}`));
    const domain = CONTRIB.has(op) ? { domain: 'com.microsoft' } : {};
    this.nodes.push({ op, ...domain, name, inputs, outputs, attributes });
    return outputs;
  }

  /** Adds a node with one output and returns its name. */
  node(op: string, inputs: readonly string[], attributes: Attributes = {}): string {
    return this.outputs(op, inputs, 1, attributes)[0]!;
  }

  /** Gives the graph an output of this name. */
  publish(value: string, name: string): void {
    this.nodes.push({ op: 'Identity', name: `${name}/Identity`, inputs: [value], outputs: [name], attributes: {} });
  }

  /** A weight of the checkpoint. */
  weight(name: string, dims: readonly number[]): string {
    if (!this.known.has(name)) this.weights.push({ name, dims });
    this.known.add(name);
    return name;
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
