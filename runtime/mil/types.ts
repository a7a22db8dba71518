import { MIL_DTYPES, type MilDtype, type MilType, type TensorType } from './ast.js';
import type { Lexer } from './lexer.js';

/** Deepest nesting of types, literals and blocks that is read. */
export const MAX_DEPTH = 32;

/** Core ML tensors have at most five dimensions; weight tables have a few more. */
const MAX_RANK = 8;

const DTYPES: ReadonlySet<string> = new Set(MIL_DTYPES);

/** `[2, 3]`, `[?]` or `[]`. */
function parseShape(lexer: Lexer): (number | null)[] {
  const shape: (number | null)[] = [];
  lexer.expect('[');
  while (!lexer.accept(']')) {
    if (shape.length > 0) lexer.expect(',');
    if (shape.length === MAX_RANK) lexer.fail(`at most ${MAX_RANK} dimensions`);
    shape.push(lexer.accept('?') ? null : lexer.count('a dimension'));
  }
  return shape;
}

function parseDtype(lexer: Lexer): MilDtype {
  const offset = lexer.offset;
  const name = lexer.name('an element type');
  if (!DTYPES.has(name)) lexer.fail('an element type', offset);
  return name as MilDtype;
}

/** The arguments of `dict<...>`, `list<...>`, `tuple<...>` and the like; read past and forgotten. */
function skipTypeArguments(lexer: Lexer, depth: number): void {
  lexer.expect('<');
  do {
    if (lexer.peek('[')) parseShape(lexer);
    else if (lexer.peekName()) parseType(lexer, depth + 1);
    else if (!lexer.accept('?')) lexer.count('a type');
  } while (lexer.accept(','));
  lexer.expect('>');
}

/** Tensor types already read from a text, by how they are written there: a graph has few, used thousands of times. */
const seen = new WeakMap<Lexer, Map<string, TensorType>>();

function parseTensorType(lexer: Lexer): TensorType {
  const known = seen.get(lexer) ?? new Map<string, TensorType>();
  if (known.size === 0) seen.set(lexer, known);
  const text = lexer.ahead('>');
  const repeated = known.get(text);
  if (repeated) {
    lexer.skip(text);
    return repeated;
  }
  lexer.expect('<');
  const dtype = parseDtype(lexer);
  lexer.expect(',');
  const shape = parseShape(lexer);
  lexer.expect('>');
  const type: TensorType = { kind: 'tensor', dtype, shape };
  known.set(text, type);
  return type;
}

/** A type: `fp16`, `tensor<fp16, [1, 4]>`, or a container such as `dict<string, string>`. */
export function parseType(lexer: Lexer, depth = 0): MilType {
  if (depth > MAX_DEPTH) lexer.fail(`types nested at most ${MAX_DEPTH} deep`);
  const offset = lexer.offset;
  const name = lexer.name('a type');
  if (DTYPES.has(name)) return { kind: 'tensor', dtype: name as MilDtype, shape: [] };
  if (!lexer.peek('<')) lexer.fail('a type', offset);
  if (name === 'tensor') return parseTensorType(lexer);
  skipTypeArguments(lexer, depth);
  return { kind: 'opaque', name };
}

/** How a type is written, for messages. */
export function typeText(type: MilType): string {
  if (type.kind === 'opaque') return `${type.name}<...>`;
  return type.shape.length === 0 ? type.dtype : `tensor<${type.dtype}, ${shapeText(type.shape)}>`;
}

export function shapeText(shape: readonly (number | null)[]): string {
  return `[${shape.map((dim) => dim ?? '?').join(', ')}]`;
}

/** Number of elements; the shape must be static. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((count, dim) => count * dim, 1);
}

/** The shape when every dimension is known. */
export function staticShape(type: TensorType): number[] | undefined {
  return type.shape.every((dim) => dim !== null) ? (type.shape as number[]).slice() : undefined;
}
