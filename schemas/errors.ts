import { isNativeError } from 'node:util/types';

/** What an error knows beside its message; every field is safe to print. */
export interface ErrorFacts {
  /** What the contract asks for. */
  readonly expected?: unknown;
  /** What was there instead. */
  readonly found?: unknown;
  /** The file, record field or question the error is about. */
  readonly where?: string;
  /** The next command to run, or the next thing to change. */
  readonly hint?: string;
  readonly cause?: unknown;
}

/**
 * Base of every error a caller can meet. `code` is stable and is what programs and tests match;
 * the message is for people and may change.
 */
export class LayaError<Code extends string = string> extends Error {
  readonly code: Code;
  readonly expected?: unknown;
  readonly found?: unknown;
  readonly where?: string;
  readonly hint?: string;

  constructor(code: Code, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    this.code = code;
    if (facts.expected !== undefined) this.expected = facts.expected;
    if (facts.found !== undefined) this.found = facts.found;
    if (facts.where !== undefined) this.where = facts.where;
    if (facts.hint !== undefined) this.hint = facts.hint;
  }

  /** The error as a record, for `--json` output and logs. */
  toJSON(): Record<string, unknown> {
    const { name, code, message, where, expected, found, hint } = this;
    return { error: name, code, message, where, expected, found, hint };
  }
}

/** Codes of faults in records and JSON texts. */
export type RecordErrorCode = 'JSON_SYNTAX' | 'JSON_LIMIT' | 'JSON_DUPLICATE_KEY' | 'RECORD_INVALID';

/** A record that does not have the shape its schema asks for, or is not JSON at all. */
export class RecordError extends LayaError<RecordErrorCode> {}

/** True for a Node system error with one of the given codes. */
export function isSystemError(error: unknown, ...codes: string[]): error is NodeJS.ErrnoException {
  if (!isNativeError(error) || error instanceof LayaError) return false;
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' && (codes.length === 0 || codes.includes(code));
}
