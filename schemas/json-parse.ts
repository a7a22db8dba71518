import { RecordError } from './errors.js';
import { DEFAULT_DEPTH, DEPTH_CEILING, JsonNumber, type JsonObject, type JsonValue } from './json-value.js';

export interface ParseOptions {
  /** Arrays and objects inside each other; 200 when not given, never more than 1000. */
  readonly maxDepth?: number;
  /** Largest text, in bytes of UTF-8; no limit when not given. */
  readonly maxBytes?: number;
  /** `refuse` (the default), or `last`: the last value at the first one's place, as Python and JSON.parse do. */
  readonly duplicates?: 'refuse' | 'last';
}

/**
 * Reads one JSON text (RFC 8259, nothing more) and keeps what JSON.parse loses: the order of all keys, numbers as
 * they were written, and keys that occur twice. Lone surrogates written as escapes are kept.
 *
 * @throws RecordError JSON_SYNTAX (`where` is the line and column), JSON_LIMIT or JSON_DUPLICATE_KEY
 */
export function parseJson(text: string, options: ParseOptions = {}): JsonValue {
  const { maxBytes } = options;
  // A UTF-16 unit is one to three bytes of UTF-8, so most texts are judged without counting.
  if (maxBytes !== undefined && text.length * 3 > maxBytes) {
    const bytes = text.length > maxBytes ? text.length : Buffer.byteLength(text, 'utf8');
    if (bytes > maxBytes) {
      throw new RecordError('JSON_LIMIT', `JSON text is larger than ${maxBytes} bytes`, {
        expected: `at most ${maxBytes} bytes`,
        found: `${bytes} bytes or more`,
      });
    }
  }
  const maxDepth = Math.min(options.maxDepth ?? DEFAULT_DEPTH, DEPTH_CEILING);
  return new Reader(text, maxDepth, options.duplicates !== 'last').document();
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const HEX4 = /[0-9a-fA-F]{4}/y;
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/** A reader over one text. `at` is the next UTF-16 unit to read; every method leaves it after what it read. */
class Reader {
  private at = 0;
  private readonly text: string;
  private readonly maxDepth: number;
  private readonly refuseDuplicates: boolean;

  constructor(text: string, maxDepth: number, refuseDuplicates: boolean) {
    this.text = text;
    this.maxDepth = maxDepth;
    this.refuseDuplicates = refuseDuplicates;
  }

  document(): JsonValue {
    this.skipSpace();
    const value = this.value(0);
    this.skipSpace();
    if (this.at < this.text.length) this.fail('the end of the text');
    return value;
  }

  /** Reads a value that starts at `at`; `depth` arrays and objects are open around it. */
  private value(depth: number): JsonValue {
    const unit = this.text.charCodeAt(this.at);
    if (unit === QUOTE) return this.string();
    if (unit === OPEN_OBJECT) return this.object(this.deeper(depth));
    if (unit === OPEN_ARRAY) return this.array(this.deeper(depth));
    if (unit === 0x74) return this.word('true', true);
    if (unit === 0x66) return this.word('false', false);
    if (unit === 0x6e) return this.word('null', null);
    return this.number();
  }

  private array(depth: number): JsonValue[] {
    const items: JsonValue[] = [];
    this.at += 1;
    this.skipSpace();
    if (this.takeIf(CLOSE_ARRAY)) return items;
    for (;;) {
      items.push(this.value(depth));
      this.skipSpace();
      if (this.takeIf(CLOSE_ARRAY)) return items;
      if (!this.takeIf(COMMA)) this.fail('"," or "]"');
      this.skipSpace();
    }
  }

  private object(depth: number): JsonObject {
    const object: JsonObject = new Map();
    this.at += 1;
    this.skipSpace();
    if (this.takeIf(CLOSE_OBJECT)) return object;
    for (;;) {
      const start = this.at;
      if (this.text.charCodeAt(start) !== QUOTE) this.fail('a key in quotes');
      const key = this.string();
      if (this.refuseDuplicates && object.has(key)) this.failDuplicate(key, start);
      this.skipSpace();
      if (!this.takeIf(COLON)) this.fail('":"');
      this.skipSpace();
      object.set(key, this.value(depth));
      this.skipSpace();
      if (this.takeIf(CLOSE_OBJECT)) return object;
      if (!this.takeIf(COMMA)) this.fail('"," or "}"');
      this.skipSpace();
    }
  }

  private string(): string {
    const { text } = this;
    let start = this.at + 1;
    let read = '';
    for (this.at = start; ; this.at += 1) {
      const unit = text.charCodeAt(this.at);
      if (unit === QUOTE) {
        const end = this.at;
        this.at += 1;
        return read + text.slice(start, end);
      }
      if (unit === BACKSLASH) {
        read += text.slice(start, this.at) + this.escape();
        start = this.at + 1;
      } else if (!(unit >= 0x20)) {
        this.fail(this.at < text.length ? 'a control character written as an escape' : 'a closing quote');
      }
    }
  }

  /** Reads the escape at `at` and leaves `at` on its last unit. */
  private escape(): string {
    this.at += 1;
    const letter = this.text[this.at] ?? '';
    if (letter === 'u') {
      HEX4.lastIndex = this.at + 1;
      const digits = HEX4.exec(this.text)?.[0];
      if (digits === undefined) this.fail('four hexadecimal digits after "\\u"');
      this.at += 4;
      return String.fromCharCode(Number.parseInt(digits, 16));
    }
    const character = Object.hasOwn(ESCAPES, letter) ? ESCAPES[letter] : undefined;
    if (character === undefined) this.fail('one of the escapes \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u');
    return character;
  }

  private number(): JsonNumber {
    NUMBER.lastIndex = this.at;
    const raw = NUMBER.exec(this.text)?.[0];
    if (raw === undefined) this.fail('a JSON value');
    this.at += raw.length;
    return new JsonNumber(raw);
  }

  private word<T>(word: string, value: T): T {
    if (!this.text.startsWith(word, this.at)) this.fail('a JSON value');
    this.at += word.length;
    return value;
  }

  private skipSpace(): void {
    for (;;) {
      const unit = this.text.charCodeAt(this.at);
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return;
      this.at += 1;
    }
  }

  private takeIf(unit: number): boolean {
    if (this.text.charCodeAt(this.at) !== unit) return false;
    this.at += 1;
    return true;
  }

  private deeper(depth: number): number {
    if (depth < this.maxDepth) return depth + 1;
    throw new RecordError('JSON_LIMIT', `JSON text is nested deeper than ${this.maxDepth} levels`, {
      expected: `at most ${this.maxDepth} levels`,
      where: this.place(this.at),
    });
  }

  private fail(expected: string): never {
    const found = this.at < this.text.length ? JSON.stringify(String.fromCodePoint(this.codePoint())) : 'the end';
    const isBom = this.at === 0 && this.text.charCodeAt(0) === 0xfeff;
    throw new RecordError('JSON_SYNTAX', `not JSON: expected ${expected}, found ${found}`, {
      expected,
      found,
      where: this.place(this.at),
      ...(isBom ? { hint: 'save the text as UTF-8 without a byte order mark' } : {}),
    });
  }

  private failDuplicate(key: string, at: number): never {
    throw new RecordError('JSON_DUPLICATE_KEY', `the key ${JSON.stringify(key)} occurs twice in one object`, {
      found: key,
      where: this.place(at),
      hint: 'keep one of the two members',
    });
  }

  private codePoint(): number {
    return this.text.codePointAt(this.at) ?? 0;
  }

  private place(at: number): string {
    const before = this.text.slice(0, at);
    const line = before.split('\n').length;
    return `line ${line}, column ${at - before.lastIndexOf('\n')}`;
  }
}
