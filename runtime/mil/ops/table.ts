import type { OperationNames } from '../program.js';
import { CONSTEXPR, foldConstexpr } from './constexpr.js';
import { ELEMENTWISE, type Emit } from './elementwise.js';
import { LINEAR } from './linear.js';
import { REDUCE } from './reduce.js';
import { SHAPE } from './shape.js';
import { SLICE } from './slice.js';

const EMITTERS: ReadonlyMap<string, Emit> = new Map(
  Object.entries({ ...ELEMENTWISE, ...LINEAR, ...REDUCE, ...SHAPE, ...SLICE }),
);

/** Every operation the portable executor runs, in alphabetical order. */
export const KNOWN_OPERATIONS: readonly string[] = ['const', ...CONSTEXPR, ...EMITTERS.keys()].sort();

const KNOWN: ReadonlySet<string> = new Set(KNOWN_OPERATIONS);

/** The operation table as the resolver asks for it. */
export const OPERATION_NAMES: OperationNames = {
  known: KNOWN_OPERATIONS,
  has: (op) => KNOWN.has(op),
  fold: foldConstexpr,
};

/** The node-by-node translation of an operation in the table. */
export function emitterOf(op: string): Emit {
  return EMITTERS.get(op) as Emit;
}
