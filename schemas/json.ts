import { JsonNumber, type JsonValue } from './json-value.js';

export { type ParseOptions, parseJson } from './json-parse.js';
export { fromPlain, type PlainJson, toPlain } from './json-plain.js';
export { JsonNumber, type JsonObject, type JsonValue } from './json-value.js';

/**
 * The value as JSON text: keys in their order, numbers as they were written. `indent` is the number of spaces a level;
 * without it the text is one line without spaces. Lone surrogates are written as escapes.
 */
export function stringifyJson(value: JsonValue, indent = 0): string {
  return write(value, indent > 0 ? ' '.repeat(indent) : '', '');
}

/** `step` is added to `margin` at each level; an empty step writes no line breaks. */
function write(value: JsonValue, step: string, margin: string): string {
  if (value instanceof JsonNumber) return value.raw;
  if (Array.isArray(value)) {
    const items = value.map((item) => write(item, step, margin + step));
    return enclose('[', items, ']', step, margin);
  }
  if (value instanceof Map) {
    const colon = step === '' ? ':' : ': ';
    const members = Array.from(value, ([key, member]) => {
      return JSON.stringify(key) + colon + write(member, step, margin + step);
    });
    return enclose('{', members, '}', step, margin);
  }
  return JSON.stringify(value);
}

function enclose(open: string, parts: string[], close: string, step: string, margin: string): string {
  if (parts.length === 0) return open + close;
  if (step === '') return open + parts.join(',') + close;
  const inner = `\n${margin}${step}`;
  return `${open}${inner}${parts.join(`,${inner}`)}\n${margin}${close}`;
}
