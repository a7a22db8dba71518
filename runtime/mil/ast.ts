/** Element types that MIL text names. `uint1` to `uint6` and `int4` are packed in weight files. */
export const MIL_DTYPES = [
  'fp16',
  'fp32',
  'fp64',
  'bool',
  'int4',
  'int8',
  'int16',
  'int32',
  'int64',
  'uint1',
  'uint2',
  'uint3',
  'uint4',
  'uint6',
  'uint8',
  'uint16',
  'uint32',
  'uint64',
  'string',
] as const;

export type MilDtype = (typeof MIL_DTYPES)[number];

/** A tensor, or a scalar when `shape` is empty; `null` is a dimension only known at run time (`?`). */
export interface TensorType {
  readonly kind: 'tensor';
  readonly dtype: MilDtype;
  readonly shape: readonly (number | null)[];
}

/** A type the executor never computes with (`dict`, `list`, `tuple`, `state`), by its outer name. */
export interface OpaqueType {
  readonly kind: 'opaque';
  readonly name: string;
}

export type MilType = TensorType | OpaqueType;

/** Where a value's bytes lie: a file under the model folder, and the offset of its record there. */
export interface BlobRef {
  readonly path: string;
  readonly offset: number;
}

/** Written-out elements in row-major order (booleans as 0 and 1), or a reference to a weight file. */
export type MilValue =
  | { readonly kind: 'numbers'; readonly type: TensorType; readonly data: readonly number[] }
  | { readonly kind: 'strings'; readonly type: TensorType; readonly data: readonly string[] }
  | { readonly kind: 'blob'; readonly type: TensorType; readonly blob: BlobRef }
  | { readonly kind: 'opaque'; readonly type: OpaqueType };

export type MilArgument =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'list'; readonly items: readonly MilArgument[] }
  | { readonly kind: 'value'; readonly value: MilValue };

export interface MilVariable {
  readonly name: string;
  readonly type: MilType;
}

/** One statement. `offset` is where it starts in the text, for messages; the label `name` is not kept. */
export interface MilOperation {
  readonly op: string;
  readonly outputs: readonly MilVariable[];
  readonly args: ReadonlyMap<string, MilArgument>;
  readonly attributes: ReadonlyMap<string, MilValue>;
  readonly blocks: readonly MilBlock[];
  readonly offset: number;
}

export interface MilBlock {
  readonly inputs: readonly MilVariable[];
  readonly operations: readonly MilOperation[];
  readonly outputs: readonly string[];
}

export interface MilFunction extends MilBlock {
  readonly name: string;
  /** The operator set, such as `ios18`. */
  readonly opset: string;
}

export interface MilProgram {
  /** The dialect: `1.0` or `1.3`. */
  readonly version: string;
  readonly functions: readonly MilFunction[];
  /** `<file>:<line>:<column>` of an operation's `offset`. */
  readonly locate: (offset: number) => string;
}
