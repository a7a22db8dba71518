import { MilError } from '../errors.js';

const TAB = 9;
const NEWLINE = 10;
const RETURN = 13;
const SPACE = 32;
const QUOTE = 34;
const PLUS = 43;
const MINUS = 45;
const DOT = 46;
const BACKSLASH = 92;

const ESCAPES: Readonly<Record<string, string>> = { '"': '"', '\\': '\\', n: '\n', r: '\r', t: '\t' };

/** 1 for characters of a name, 2 for those that may also start one. */
const NAME_CLASS = new Uint8Array(128);
for (let c = 0; c < 128; c++) {
  const char = String.fromCharCode(c);
  if (/[A-Za-z_]/.test(char)) NAME_CLASS[c] = 2;
  else if (/[0-9]/.test(char)) NAME_CLASS[c] = 1;
}

const HEX_FLOAT = /^([+-]?)0[xX]([0-9a-fA-F]+)(?:\.([0-9a-fA-F]*))?[pP]([+-]?[0-9]{1,6})$/;
const DECIMAL = /^[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?$/;

/** The value of a C hexadecimal float such as `-0x1.8p-3`, or undefined when the text is not one. */
export function parseHexFloat(text: string): number | undefined {
  const match = HEX_FLOAT.exec(text);
  if (!match) return undefined;
  const fraction = match[3] ?? '';
  const digits = match[2] + fraction;
  if (digits.length > 32) return undefined;
  const mantissa = Number.parseInt(digits, 16);
  const magnitude = mantissa === 0 ? 0 : mantissa * 2 ** (Number(match[4]) - 4 * fraction.length);
  return match[1] === '-' ? -magnitude : magnitude;
}

/**
 * Reads MIL text character by character; white space between tokens is skipped. Every failure is a MilError
 * `MIL_SYNTAX` whose `where` is `<file>:<line>:<column>`.
 */
export class Lexer {
  private readonly text: string;
  private readonly file: string;
  private at = 0;

  constructor(text: string, file: string) {
    this.text = text;
    this.file = file;
  }

  /** The offset of the next token. */
  get offset(): number {
    this.skipSpace();
    return this.at;
  }

  /** `<file>:<line>:<column>` of an offset, both counted from 1. */
  locate(offset: number): string {
    let line = 1;
    let start = 0;
    for (let next = this.text.indexOf('\n'); next >= 0 && next < offset; next = this.text.indexOf('\n', start)) {
      line++;
      start = next + 1;
    }
    return `${this.file}:${line}:${offset - start + 1}`;
  }

  fail(expected: string, offset = this.offset): never {
    const found =
      offset >= this.text.length ? 'the end of the text' : JSON.stringify(this.text.slice(offset, offset + 24));
    const where = this.locate(offset);
    throw new MilError('MIL_SYNTAX', `${where}: expected ${expected}, found ${found}`, {
      expected,
      found,
      where,
      hint: 'Compile the model again; this file is damaged or is not MIL text.',
    });
  }

  private skipSpace(): void {
    const { text } = this;
    let { at } = this;
    for (let c = text.charCodeAt(at); c === SPACE || c === NEWLINE || c === RETURN || c === TAB; ) {
      c = text.charCodeAt(++at);
    }
    this.at = at;
  }

  atEnd(): boolean {
    return this.offset >= this.text.length;
  }

  /** True when the next character is this one; nothing is consumed. */
  peek(char: string): boolean {
    this.skipSpace();
    return this.text.charCodeAt(this.at) === char.charCodeAt(0);
  }

  /** The text from here to the next such character, which is included; empty when there is none. */
  ahead(char: string): string {
    this.skipSpace();
    return this.text.slice(this.at, this.text.indexOf(char, this.at) + 1);
  }

  /** Moves past text that `ahead` gave. */
  skip(text: string): void {
    this.at += text.length;
  }

  /** Goes back to an offset that `offset` gave. */
  rewind(offset: number): void {
    this.at = offset;
  }

  /** Consumes the character when it is next. */
  accept(char: string): boolean {
    if (!this.peek(char)) return false;
    this.at++;
    return true;
  }

  expect(char: string): void {
    if (!this.accept(char)) this.fail(`"${char}"`);
  }

  /** Consumes `->`. */
  arrow(): void {
    this.skipSpace();
    if (!this.text.startsWith('->', this.at)) this.fail('"->"');
    this.at += 2;
  }

  /** True when the next token is this word; nothing is consumed. */
  peekWord(word: string): boolean {
    this.skipSpace();
    return this.text.startsWith(word, this.at) && !NAME_CLASS[this.text.charCodeAt(this.at + word.length)];
  }

  peekName(): boolean {
    this.skipSpace();
    return NAME_CLASS[this.text.charCodeAt(this.at)] === 2;
  }

  name(what: string): string {
    if (!this.peekName()) this.fail(what);
    const start = this.at++;
    while ((NAME_CLASS[this.text.charCodeAt(this.at)] ?? 0) > 0) this.at++;
    return this.text.slice(start, this.at);
  }

  /** Consumes exactly this word. */
  word(expected: string): void {
    const offset = this.offset;
    if (this.name(`"${expected}"`) !== expected) this.fail(`"${expected}"`, offset);
  }

  /** A count: decimal digits only, at most 2^53. */
  count(what: string): number {
    const offset = this.offset;
    const value = this.number(what);
    if (!Number.isSafeInteger(value) || value < 0) this.fail(what, offset);
    return value;
  }

  /** A decimal or hexadecimal number, or one of `inf`, `-inf`, `nan`. */
  number(what: string): number {
    const start = this.offset;
    let c = this.text.charCodeAt(this.at);
    while (NAME_CLASS[c] || c === DOT || c === MINUS || c === PLUS) {
      c = this.text.charCodeAt(++this.at);
    }
    const token = this.text.slice(start, this.at);
    const value = DECIMAL.test(token) ? Number(token) : (parseHexFloat(token) ?? SPECIAL.get(token));
    if (value === undefined) this.fail(what, start);
    return value;
  }

  string(what: string): string {
    if (!this.accept('"')) this.fail(what);
    const start = this.at;
    let plain = start;
    let value = '';
    for (;;) {
      const c = this.text.charCodeAt(this.at);
      if (Number.isNaN(c)) this.fail('a closing quote', this.text.length);
      if (c === QUOTE) return value + this.text.slice(plain, this.at++);
      if (c !== BACKSLASH) {
        this.at++;
        continue;
      }
      const meaning = ESCAPES[this.text[this.at + 1] ?? ''];
      if (meaning === undefined) this.fail('an escape sequence', this.at);
      value += this.text.slice(plain, this.at) + meaning;
      this.at += 2;
      plain = this.at;
    }
  }
}

const SPECIAL: ReadonlyMap<string, number> = new Map([
  ['inf', Number.POSITIVE_INFINITY],
  ['-inf', Number.NEGATIVE_INFINITY],
  ['nan', Number.NaN],
  ['-nan', Number.NaN],
]);
