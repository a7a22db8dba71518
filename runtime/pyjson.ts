import { JsonNumber, type JsonValue } from '../schemas/json.js';
import { InvalidRequestError } from './errors.js';
import { loneSurrogateAt } from './text.js';

/** Longest integer that Python reads from JSON, in digits (`sys.int_info.default_max_str_digits`). */
const MAX_INTEGER_DIGITS = 4300;

/**
 * The text Python's `json.dumps(value, ensure_ascii=False)` prints for a value it read from the same JSON text:
 * ", " and ": " between parts, non-ASCII kept, integers exact, floats as Python's shortest repr. This is what the
 * models were trained to read, so every character counts.
 *
 * @throws InvalidRequestError TEXT_INVALID for an integer of more digits than Python reads
 */
export function pythonJson(value: JsonValue): string {
  if (typeof value === 'string') return pythonString(value);
  if (value instanceof JsonNumber) return pythonNumber(value);
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(', ')}]`;
  if (value instanceof Map) {
    const members = Array.from(value, ([key, member]) => `${pythonString(key)}: ${pythonJson(member)}`);
    return `{${members.join(', ')}}`;
  }
  return String(value);
}

/** A JSON number as Python prints it: `1.0` stays `1.0`, `1E5` becomes `100000.0`, `-0` becomes `0`. */
export function pythonNumber(number: JsonNumber): string {
  const { raw } = number;
  if (!number.isInteger) return pythonFloat(Number(raw));
  const digits = raw.startsWith('-') ? raw.length - 1 : raw.length;
  if (digits > MAX_INTEGER_DIGITS) {
    throw new InvalidRequestError('TEXT_INVALID', `an integer of ${digits} digits can't be read`, {
      expected: `at most ${MAX_INTEGER_DIGITS} digits`,
      found: `${digits} digits`,
      hint: 'send the number as a string',
    });
  }
  return raw === '-0' ? '0' : raw;
}

/**
 * Python's `repr` of a float, with JSON's names for what isn't finite. Both languages print the shortest digits that
 * read back as the same number; only the layout differs: Python writes an exponent of two digits or more, below 1e-4
 * and from 1e16 on.
 */
export function pythonFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const [mantissa = '', exponentText = ''] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  const exponent = Number(exponentText);

  if (exponent < -4 || exponent >= 16) {
    const power = String(Math.abs(exponent)).padStart(2, '0');
    return `${sign}${mantissa}e${exponent < 0 ? '-' : '+'}${power}`;
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  return `${sign}${whole}.${digits.slice(exponent + 1) || '0'}`;
}

/** JSON.stringify escapes exactly what Python escapes, and lone surrogates too, which Python writes as they are. */
function pythonString(text: string): string {
  if (loneSurrogateAt(text) < 0) return JSON.stringify(text);
  const parts = text.split(/(\p{Surrogate})/u);
  return `"${parts.map((part, index) => (index % 2 === 1 ? part : JSON.stringify(part).slice(1, -1))).join('')}"`;
}
