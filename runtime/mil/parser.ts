import type { MilArgument, MilBlock, MilFunction, MilOperation, MilProgram, MilValue, MilVariable } from './ast.js';
import { Lexer } from './lexer.js';
import { parseValue } from './literals.js';
import { MAX_DEPTH, parseType } from './types.js';

/** The dialects this parser knows; they differ in how scalars and strings are typed. */
const VERSIONS: ReadonlySet<string> = new Set(['1.0', '1.3']);

const NONE: ReadonlyMap<string, MilValue> = new Map();

class Parser {
  private readonly lexer: Lexer;

  constructor(lexer: Lexer) {
    this.lexer = lexer;
  }

  program(): MilProgram {
    const { lexer } = this;
    lexer.word('program');
    lexer.expect('(');
    const offset = lexer.offset;
    const version = lexer.number('a version').toFixed(1);
    if (!VERSIONS.has(version)) lexer.fail(`program version ${[...VERSIONS].join(' or ')}`, offset);
    lexer.expect(')');
    this.attributes();
    lexer.expect('{');
    const functions: MilFunction[] = [];
    while (!lexer.accept('}')) functions.push(this.function());
    if (!lexer.atEnd()) lexer.fail('the end of the text');
    return { version, functions, locate: (offset) => lexer.locate(offset) };
  }

  private function(): MilFunction {
    const { lexer } = this;
    lexer.word('func');
    const name = lexer.name('a function name');
    lexer.expect('<');
    const opset = lexer.name('an operator set');
    lexer.expect('>');
    const inputs = this.variables();
    this.attributes();
    const { operations, outputs } = this.body(0);
    lexer.expect(';');
    return { name, opset, inputs, operations, outputs };
  }

  /** `(type name, type name)`. */
  private variables(): MilVariable[] {
    const { lexer } = this;
    const variables: MilVariable[] = [];
    lexer.expect('(');
    while (!lexer.accept(')')) {
      if (variables.length > 0) lexer.expect(',');
      variables.push(this.variable());
    }
    return variables;
  }

  private variable(): MilVariable {
    const type = parseType(this.lexer);
    return { type, name: this.lexer.name('a variable name') };
  }

  /** `{ statements } -> (names)`. */
  private body(depth: number): { operations: MilOperation[]; outputs: string[] } {
    const { lexer } = this;
    const operations: MilOperation[] = [];
    const outputs: string[] = [];
    lexer.expect('{');
    while (!lexer.accept('}')) operations.push(this.operation(depth));
    lexer.arrow();
    lexer.expect('(');
    while (!lexer.accept(')')) {
      if (outputs.length > 0) lexer.expect(',');
      outputs.push(lexer.name('a variable name'));
    }
    return { operations, outputs };
  }

  private operation(depth: number): MilOperation {
    const { lexer } = this;
    const offset = lexer.offset;
    const outputs: MilVariable[] = [];
    do outputs.push(this.variable());
    while (lexer.accept(','));
    lexer.expect('=');
    const op = lexer.name('an operation');
    lexer.expect('(');
    const args = this.named(')', () => this.argument(0));
    const attributes = this.attributes();
    const blocks: MilBlock[] = [];
    while (!lexer.accept(';')) {
      if (!lexer.peek('(')) lexer.fail('";"');
      if (depth === MAX_DEPTH) lexer.fail(`blocks nested at most ${MAX_DEPTH} deep`);
      const inputs = this.variables();
      blocks.push({ inputs, ...this.body(depth + 1) });
    }
    return { op, outputs, args, attributes, blocks, offset };
  }

  /** `[name = value, ...]`, or nothing. The label `name`, which only tools show, is checked and left out. */
  private attributes(): ReadonlyMap<string, MilValue> {
    const { lexer } = this;
    if (!lexer.accept('[')) return NONE;
    const start = lexer.offset;
    if (lexer.name('an attribute') === 'name' && lexer.accept('=')) {
      parseValue(lexer);
      if (lexer.accept(']')) return NONE;
    }
    lexer.rewind(start);
    const attributes = this.named(']', () => parseValue(lexer));
    attributes.delete('name');
    return attributes;
  }

  /** `name = value, ...` up to the closing bracket; the opening one is behind. */
  private named<T>(close: string, read: () => T): Map<string, T> {
    const { lexer } = this;
    const entries = new Map<string, T>();
    while (!lexer.accept(close)) {
      if (entries.size > 0) lexer.expect(',');
      const offset = lexer.offset;
      const name = lexer.name('an argument name');
      if (entries.has(name)) lexer.fail(`one value for "${name}"`, offset);
      lexer.expect('=');
      entries.set(name, read());
    }
    return entries;
  }

  private argument(depth: number): MilArgument {
    const { lexer } = this;
    if (depth > MAX_DEPTH) lexer.fail(`arguments nested at most ${MAX_DEPTH} deep`);
    if (lexer.accept('(')) {
      const items: MilArgument[] = [];
      while (!lexer.accept(')')) {
        if (items.length > 0) lexer.expect(',');
        items.push(this.argument(depth + 1));
      }
      return { kind: 'list', items };
    }
    const start = lexer.offset;
    const name = lexer.name('a value or a variable name');
    if (!lexer.peek('<') && !lexer.peek('(')) return { kind: 'name', name };
    lexer.rewind(start);
    return { kind: 'value', value: parseValue(lexer) };
  }
}

/**
 * Parses MIL text of either dialect. Operations are not judged here: any name is accepted.
 *
 * @param file How messages name the text, such as `model.mil`.
 * @throws MilError `MIL_SYNTAX`, whose `where` is `<file>:<line>:<column>`.
 */
export function parseMil(text: string, file = 'model.mil'): MilProgram {
  return new Parser(new Lexer(text, file)).program();
}
