import { statSync } from 'node:fs';
import { readTextSync } from '../schemas/door.js';
import { isSystemError, RecordError } from '../schemas/errors.js';

/** A marker's fields, whatever they are; none when it can't be read as a record; undefined when it is not there. */
export function readMarker(path: string): Record<string, unknown> | undefined {
  try {
    // Most places have none, and a look is cheaper than an error.
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    const value: unknown = JSON.parse(readTextSync(path));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return undefined;
    if (error instanceof SyntaxError || error instanceof RecordError || isSystemError(error)) return {};
    throw error;
  }
}
