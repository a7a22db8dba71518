import { RecordError } from './errors.js';
import { DEPTH_CEILING, JsonNumber, type JsonObject, type JsonValue } from './json-value.js';

/** What `toPlain` makes: objects have no prototype, so `__proto__` and `toString` are keys like others. */
export type PlainJson = string | number | boolean | null | PlainJson[] | { [key: string]: PlainJson };

/**
 * The value as plain JavaScript. Key order is JavaScript's from here on (number-like keys first).
 *
 * @throws RecordError RECORD_INVALID for a number JavaScript can't hold: an integer beyond 2^53 - 1, or one that
 * overflows to infinity; `where` is the path to it
 */
export function toPlain(value: JsonValue, where = '$'): PlainJson {
  if (value instanceof JsonNumber) return plainNumber(value, where);
  if (Array.isArray(value)) return value.map((item, index) => toPlain(item, `${where}[${index}]`));
  if (value instanceof Map) {
    const object: { [key: string]: PlainJson } = Object.create(null);
    for (const [key, member] of value) object[key] = toPlain(member, memberPath(where, key));
    return object;
  }
  return value;
}

function plainNumber(number: JsonNumber, where: string): number {
  const value = Number(number.raw);
  if (Number.isFinite(value) && (Number.isSafeInteger(value) || !number.isInteger)) return value;
  throw new RecordError('RECORD_INVALID', `${number.raw.slice(0, 40)} is outside the numbers that can be kept`, {
    expected: 'an integer of at most 2^53 - 1, or a finite number',
    found: number.raw.slice(0, 400),
    where,
  });
}

/**
 * A caller's JavaScript value as JSON. Takes strings, booleans, null, finite numbers, bigints, arrays, plain objects,
 * Maps with string keys and `JsonNumber`s. Numbers become the text JSON.stringify writes: `1` for 1.0, `0` for -0. A plain
 * object lists number-like keys first, as JavaScript does: who needs another order passes a Map.
 *
 * @throws RecordError RECORD_INVALID with the path as `where` for anything else, and for a cycle; JSON_LIMIT when
 * nested deeper than 1000
 */
export function fromPlain(value: unknown): JsonValue {
  return convert(value, '$', []);
}

/** `open` holds the arrays and objects around `value`, outermost first. */
function convert(value: unknown, where: string, open: object[]): JsonValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return new JsonNumber(numberText(value, where));
  if (typeof value === 'bigint') return new JsonNumber(String(value));
  if (value instanceof JsonNumber) return value;
  if (typeof value !== 'object') return refuse(`a ${typeof value}`, where);

  if (open.includes(value)) return refuse('a reference to an object around it', where);
  if (open.length >= DEPTH_CEILING) {
    throw new RecordError('JSON_LIMIT', `the value is nested deeper than ${DEPTH_CEILING} levels`, { where });
  }
  open.push(value);
  const converted = Array.isArray(value)
    ? Array.from(value, (item, index) => convert(item, `${where}[${index}]`, open))
    : convertMembers(members(value, where), where, open);
  open.pop();
  return converted;
}

function convertMembers(entries: Iterable<[unknown, unknown]>, where: string, open: object[]): JsonObject {
  const object: JsonObject = new Map();
  for (const [key, member] of entries) {
    if (typeof key !== 'string') refuse(`a Map key that is a ${typeof key}`, where);
    object.set(key, convert(member, memberPath(where, key), open));
  }
  return object;
}

function members(value: object, where: string): Iterable<[unknown, unknown]> {
  if (value instanceof Map) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return Object.entries(value);
  return refuse(`an object of class ${value.constructor?.name ?? 'unknown'}`, where);
}

function numberText(value: number, where: string): string {
  if (!Number.isFinite(value)) refuse(String(value), where);
  return JSON.stringify(value);
}

function memberPath(where: string, key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `${where}.${key}` : `${where}[${JSON.stringify(key)}]`;
}

function refuse(found: string, where: string): never {
  throw new RecordError('RECORD_INVALID', `${found} has no JSON form`, {
    expected: 'a string, boolean, null, finite number, array, plain object or Map with string keys',
    found,
    where,
  });
}
