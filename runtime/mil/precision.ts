import type { TensorSpec } from './translate.js';

/** At which precision a model runs here. */
export interface Precision {
  /** What every operation computes in. */
  readonly compute: 'float32';
  /** What the weights were stored as before they were widened. */
  readonly weights: string;
  /** What inputs and outputs are rounded to. */
  readonly io: string;
}

/** The precision of the channel-first graphs, whose weights and interface are float16. */
export const PRECISION = { compute: 'float32', weights: 'float16', io: 'float16' } as const satisfies Precision;

const NAMES: Readonly<Record<string, string>> = { fp16: 'float16', fp32: 'float32' };

function summary(dtypes: Iterable<string>): string {
  const names = [...new Set([...dtypes].map((dtype) => NAMES[dtype] ?? dtype))].sort();
  return names.join('+') || 'none';
}

/** The precision of one translated program. */
export function precisionOf(program: {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly weightDtypes: ReadonlySet<string>;
}): Precision {
  const io = [...program.inputs, ...program.outputs].map((tensor) => tensor.dtype);
  return { compute: 'float32', weights: summary(program.weightDtypes), io: summary(io) };
}
