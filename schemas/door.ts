import { readFileSync, type Stats, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { RecordError } from './errors.js';
import type { Validator } from './generated/validators.js';
import { parseJson, toPlain } from './json.js';
import { parsePlainFast } from './json-fast.js';

/** Upper bound of a record's text, in bytes; goldens are the largest. */
const MAX_RECORD_BYTES = 64 << 20;

/**
 * The one door through which a record enters: strict JSON (no BOM, no duplicate keys, bounded depth
 * and size), then its schema. Afterwards it is typed. Throws RecordError, which lists every bad path.
 */
export function parseRecord<T>(text: string, validator: Validator, where: string): T {
  const value = parsePlainFast(text) ?? toPlain(parseJson(text, { maxBytes: MAX_RECORD_BYTES }));
  return checkRecord<T>(value, validator, where);
}

/** Checks a value against a schema. Throws RecordError (RECORD_INVALID) with all paths that do not fit. */
export function checkRecord<T>(value: unknown, validator: Validator, where: string): T {
  if (validator(value)) return value as T;
  const faults = (validator.errors ?? []).map((fault) => `${fault.instancePath || '/'} ${fault.message ?? ''}`.trim());
  const shown = faults.slice(0, 8).join('; ');
  throw new RecordError('RECORD_INVALID', `${where}: ${shown}`, { where, found: faults });
}

/** Reads and checks a record from a file. System errors pass through. */
export async function readRecord<T>(path: string, validator: Validator): Promise<T> {
  return parseRecord<T>(await readText(path), validator, path);
}

/** A file's text. Throws RecordError (JSON_LIMIT, JSON_SYNTAX) when it is too large, no regular file, or not UTF-8. */
export async function readText(path: string): Promise<string> {
  checkFile(await stat(path), path);
  return decodeText(await readFile(path), path);
}

/** The same without giving way to other work, for commands that read a thousand small records. */
export function readTextSync(path: string): string {
  checkFile(statSync(path), path);
  const text = readFileSync(path, 'utf8');
  // What is not UTF-8 was read as U+FFFD; only the bytes tell it from the character itself.
  return text.includes('\ufffd') ? decodeText(readFileSync(path), path) : text;
}

/** Opening a named pipe would wait for its other end. */
function checkFile(found: Stats, where: string): void {
  if (!found.isFile()) {
    throw new RecordError('JSON_SYNTAX', `${where} is not a regular file`, { where, expected: 'a regular file' });
  }
  if (found.size <= MAX_RECORD_BYTES) return;
  throw new RecordError('JSON_LIMIT', `${where} is too large for a record`, {
    where,
    expected: `at most ${MAX_RECORD_BYTES} bytes`,
    found: `${found.size} bytes`,
  });
}

/** A record's text from its bytes. Throws RecordError JSON_SYNTAX when they are not UTF-8. */
export function decodeText(bytes: Uint8Array, where: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new RecordError('JSON_SYNTAX', `${where} is not UTF-8 text`, { where, cause });
  }
}
