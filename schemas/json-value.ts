/**
 * A number of a JSON text, kept as it was written: `1`, `1.0` and `1e0` are three different texts for a model,
 * and integers above 2^53 stay exact. `raw` is always valid JSON number text.
 */
export class JsonNumber {
  readonly raw: string;

  constructor(raw: string) {
    this.raw = raw;
  }

  /** True when the text has neither a fraction nor an exponent, which is what Python reads as an int. */
  get isInteger(): boolean {
    return !/[.eE]/.test(this.raw);
  }
}

/** A JSON object in the order of its text, also for keys that look like numbers and for `__proto__`. */
export type JsonObject = Map<string, JsonValue>;

export type JsonValue = string | boolean | null | JsonNumber | JsonValue[] | JsonObject;

/** Deepest nesting that is ever read or written, whatever a caller asks for; it bounds all recursion over values. */
export const DEPTH_CEILING = 1000;

/** Deepest nesting that is read when the caller doesn't say. */
export const DEFAULT_DEPTH = 200;
