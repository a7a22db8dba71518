import { isUtf8 } from 'node:buffer';
import { RecordError } from '../schemas/errors.js';
import { type PlainJson, parseJson, toPlain } from '../schemas/json.js';
import { CheckpointError } from './errors.js';

/** Largest configuration file that is read; real ones are a few KB. */
export const MAX_CONFIG_BYTES = 4 << 20;

/**
 * One configuration file's members, read field by field. Every complaint is a CheckpointError CHECKPOINT_CONFIG whose
 * `where` is the file and the key.
 */
export class ConfigFields {
  private readonly file: string;
  private readonly members: { readonly [key: string]: PlainJson };

  constructor(file: string, members: { readonly [key: string]: PlainJson }) {
    this.file = file;
    this.members = members;
  }

  /** Reads a file's text, which is not trusted: bounded size and depth, no duplicate keys, an object at the top. */
  static parse(file: string, bytes: Buffer): ConfigFields {
    const refuse = (found: string, where = file, cause?: unknown): never => {
      const facts = { where, expected: 'a JSON object in UTF-8', found, ...(cause === undefined ? {} : { cause }) };
      throw new CheckpointError('CHECKPOINT_CONFIG', `the file can't be read: ${found}`, facts);
    };
    if (!isUtf8(bytes)) return refuse('it is not UTF-8');
    try {
      const value = toPlain(parseJson(bytes.toString('utf8'), { maxBytes: MAX_CONFIG_BYTES }));
      return isObject(value) ? new ConfigFields(file, value) : refuse('it holds no JSON object');
    } catch (error) {
      if (!(error instanceof RecordError)) throw error;
      return refuse(error.message.slice(0, 200), error.where === undefined ? file : `${file}: ${error.where}`, error);
    }
  }

  keys(): string[] {
    return Object.keys(this.members);
  }

  has(key: string): boolean {
    return Object.hasOwn(this.members, key);
  }

  /** The value as it stands there; undefined when the key is absent. */
  raw(key: string): PlainJson | undefined {
    return this.has(key) ? this.members[key] : undefined;
  }

  /** A whole number within bounds. An absent key is an error unless there is a fallback. */
  integer(key: string, low: number, high: number, fallback?: number): number {
    const value = this.has(key) ? this.raw(key) : fallback;
    if (typeof value === 'number' && Number.isInteger(value) && value >= low && value <= high) return value;
    return this.refuse(key, `a whole number from ${low} to ${high}`);
  }

  /** A finite number within bounds. An absent key is an error unless there is a fallback. */
  number(key: string, low: number, high: number, fallback?: number): number {
    const value = this.has(key) ? this.raw(key) : fallback;
    if (typeof value === 'number' && value >= low && value <= high) return value;
    return this.refuse(key, `a number from ${low} to ${high}`);
  }

  string(key: string): string {
    const value = this.raw(key);
    return typeof value === 'string' ? value : this.refuse(key, 'a text');
  }

  /** An object's members; empty when the key is absent. `null` counts as absent only where `nullable` says so. */
  object(key: string, nullable = false): { readonly [key: string]: PlainJson } {
    const value = this.raw(key);
    if (value === undefined || (nullable && value === null)) return {};
    return isObject(value) ? value : this.refuse(key, 'an object');
  }

  /** Refuses a key whose value is none of those given. An absent key passes. */
  only(key: string, allowed: readonly PlainJson[]): void {
    const value = this.raw(key);
    const text = JSON.stringify(value);
    if (value !== undefined && !allowed.some((one) => JSON.stringify(one) === text)) {
      this.refuse(key, allowed.map((one) => JSON.stringify(one)).join(' or '));
    }
  }

  /** Refuses keys that are not in the list: what they mean is not known, so they can't be ignored. */
  refuseUnknown(known: ReadonlySet<string>): void {
    const unknown = this.keys().filter((key) => !known.has(key));
    if (unknown.length === 0) return;
    const found = unknown.slice(0, 8).map((key) => JSON.stringify(key.slice(0, 80)));
    throw new CheckpointError('CHECKPOINT_CONFIG', `unknown keys, which might change the model: ${found.join(', ')}`, {
      where: this.file,
      expected: 'only keys whose meaning is known',
      found: found.join(', '),
      hint: 'use a checkpoint of a supported architecture; a new key needs support here before it can be converted',
    });
  }

  refuse(key: string, expected: string, code: 'CHECKPOINT_CONFIG' | 'CHECKPOINT_LAYOUT' = 'CHECKPOINT_CONFIG'): never {
    const value = this.raw(key);
    const found = value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 120);
    throw new CheckpointError(code, `${key}: expected ${expected}, found ${found}`, {
      where: `${this.file}: ${key}`,
      expected,
      found,
    });
  }
}

function isObject(value: PlainJson | undefined): value is { [key: string]: PlainJson } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
