import type { BlobRef, MilDtype, MilValue, TensorType } from './ast.js';
import type { Lexer } from './lexer.js';
import { MAX_DEPTH, parseType, typeText } from './types.js';

/** Inclusive bounds of the integer types that a literal is held to. */
const INTEGER_RANGE: Partial<Record<MilDtype, readonly [number, number]>> = {
  bool: [0, 1],
  int4: [-8, 7],
  int8: [-128, 127],
  int16: [-32768, 32767],
  int32: [-(2 ** 31), 2 ** 31 - 1],
  int64: [-(2 ** 63), 2 ** 63],
  uint1: [0, 1],
  uint2: [0, 3],
  uint3: [0, 7],
  uint4: [0, 15],
  uint6: [0, 63],
  uint8: [0, 255],
  uint16: [0, 65535],
  uint32: [0, 2 ** 32 - 1],
  uint64: [0, 2 ** 64],
};

function parseNumber(lexer: Lexer, dtype: MilDtype): number {
  const offset = lexer.offset;
  if (dtype === 'bool' && lexer.peekName()) {
    const word = lexer.name('true or false');
    if (word !== 'true' && word !== 'false') lexer.fail('true or false', offset);
    return word === 'true' ? 1 : 0;
  }
  const value = lexer.number(`a value of type ${dtype}`);
  const range = INTEGER_RANGE[dtype];
  if (range && !(Number.isInteger(value) && value >= range[0] && value <= range[1])) {
    lexer.fail(`a value of type ${dtype}`, offset);
  }
  return value;
}

/** Elements in nested brackets; the nesting must have the declared shape exactly. */
function parseElements<T>(lexer: Lexer, type: TensorType, axis: number, element: () => T, into: T[]): void {
  if (axis === type.shape.length) {
    into.push(element());
    return;
  }
  const size = type.shape[axis];
  const offset = lexer.offset;
  lexer.expect('[');
  let count = 0;
  while (!lexer.accept(']')) {
    if (count > 0) lexer.expect(',');
    if (count === size) lexer.fail(`${size} elements on axis ${axis} of ${typeText(type)}`);
    parseElements(lexer, type, axis + 1, element, into);
    count++;
  }
  if (size !== null && count !== size) lexer.fail(`${size} elements on axis ${axis} of ${typeText(type)}`, offset);
}

/** A scalar string or integer as either dialect writes it inside BLOBFILE. */
function parseTyped<T>(lexer: Lexer, dtype: MilDtype, read: () => T): T {
  const offset = lexer.offset;
  const type = parseType(lexer);
  if (type.kind !== 'tensor' || type.dtype !== dtype || type.shape.length !== 0) lexer.fail(dtype, offset);
  lexer.expect('(');
  const value = read();
  lexer.expect(')');
  return value;
}

/** `BLOBFILE(path = string("..."), offset = uint64(64))`. */
function parseBlob(lexer: Lexer): BlobRef {
  lexer.word('BLOBFILE');
  lexer.expect('(');
  lexer.word('path');
  lexer.expect('=');
  const path = parseTyped(lexer, 'string', () => lexer.string('a path'));
  lexer.expect(',');
  lexer.word('offset');
  lexer.expect('=');
  const offset = parseTyped(lexer, 'uint64', () => parseNumber(lexer, 'uint64'));
  lexer.expect(')');
  return { path, offset };
}

const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

/** The literal of a container type: brackets of any kind, checked for balance and forgotten. */
function skipLiteral(lexer: Lexer, depth: number): void {
  if (depth > MAX_DEPTH) lexer.fail(`literals nested at most ${MAX_DEPTH} deep`);
  const open = Object.keys(CLOSING).find((bracket) => lexer.accept(bracket));
  if (open === undefined) {
    if (lexer.peek('"')) lexer.string('a string');
    else if (lexer.peekWord('BLOBFILE')) parseBlob(lexer);
    else if (lexer.peekName()) lexer.name('a literal');
    else lexer.number('a literal');
    return;
  }
  const close = CLOSING[open] as string;
  for (let first = true; !lexer.accept(close); first = false) {
    if (!first) lexer.expect(',');
    skipLiteral(lexer, depth + 1);
  }
}

/** A typed literal: `int32(1)`, `tensor<fp16, [2]>([0x1p+0, 0x1p+1])`, `tensor<fp16, [8]>(BLOBFILE(...))`. */
export function parseValue(lexer: Lexer): MilValue {
  const type = parseType(lexer);
  if (type.kind === 'opaque') {
    lexer.expect('(');
    skipLiteral(lexer, 0);
    lexer.expect(')');
    return { kind: 'opaque', type };
  }
  lexer.expect('(');
  let value: MilValue;
  if (lexer.peekWord('BLOBFILE')) {
    value = { kind: 'blob', type, blob: parseBlob(lexer) };
  } else if (type.dtype === 'string') {
    const data: string[] = [];
    parseElements(lexer, type, 0, () => lexer.string('a string'), data);
    value = { kind: 'strings', type, data };
  } else {
    const data: number[] = [];
    parseElements(lexer, type, 0, () => parseNumber(lexer, type.dtype), data);
    value = { kind: 'numbers', type, data };
  }
  lexer.expect(')');
  return value;
}
