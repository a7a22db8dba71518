import { type JsonValue, stringifyJson } from '../schemas/json.js';

/** What Python's `str.strip()` takes for white space; JavaScript's `trim()` differs in six characters. */
const PYTHON_SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

/** Python's `text.strip()`, in linear time. */
export function pythonStrip(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && PYTHON_SPACE.test(text.charAt(start))) start += 1;
  while (end > start && PYTHON_SPACE.test(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

/** The UTF-16 index of the first surrogate without its partner, or -1 for text that UTF-8 can carry. */
export function loneSurrogateAt(text: string): number {
  return text.search(/\p{Surrogate}/u);
}

/** A value for an error message: its JSON, cut to a length that fits on a line. */
export function excerpt(value: JsonValue | undefined): string {
  if (value === undefined) return 'nothing';
  const text = stringifyJson(value);
  return text.length > 120 ? `${text.slice(0, 120)}...` : text;
}
