import { lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isSystemError } from '../../schemas/errors.js';
import { MilError } from '../errors.js';

/** The program's text inside an `.mlmodelc`. */
const PROGRAM = 'model.mil';

/** Largest program text that is read; the largest real ones have a few MiB. */
const MAX_TEXT_BYTES = 256 * 1024 * 1024;

/**
 * The MIL text of an `.mlmodelc` folder.
 *
 * @throws MilError `MIL_MISSING` when the folder has no readable `model.mil`; `MIL_SYNTAX` when it is larger than
 *   256 MiB or is not UTF-8.
 */
export function readMilText(dir: string): string {
  const where = join(dir, PROGRAM);
  try {
    const stat = statSync(where);
    if (!stat.isFile()) throw missing(where, 'something that is no file');
    if (stat.size > MAX_TEXT_BYTES) {
      throw new MilError('MIL_SYNTAX', `${where}: expected at most ${MAX_TEXT_BYTES} bytes, found ${stat.size}`, {
        expected: MAX_TEXT_BYTES,
        found: stat.size,
        where,
      });
    }
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(where));
  } catch (error) {
    if (isSystemError(error, 'ERR_ENCODING_INVALID_ENCODED_DATA')) {
      throw new MilError('MIL_SYNTAX', `${where}: not UTF-8 text`, { where, expected: 'UTF-8', cause: error });
    }
    if (isSystemError(error)) throw missing(where, String(error.code), error);
    throw error;
  }
}

function missing(where: string, found: string, cause?: unknown): MilError {
  return new MilError('MIL_MISSING', `${where}: expected a compiled program, found ${found}`, {
    expected: 'a .mlmodelc folder with a model.mil',
    found,
    where,
    hint: 'Build or fetch the artifact again.',
    ...(cause === undefined ? {} : { cause }),
  });
}

/** What tells a file from a changed or replaced one without reading it. */
export interface FileStat {
  readonly path: string;
  readonly size: string;
  readonly mtime_ns: string;
  readonly ctime_ns: string;
  readonly ino: string;
}

/** The stat of one file; `path` is how the record names it. */
export function fileStat(file: string, path: string): FileStat {
  const { size, mtimeNs, ctimeNs, ino } = lstatSync(file, { bigint: true });
  return { path, size: `${size}`, mtime_ns: `${mtimeNs}`, ctime_ns: `${ctimeNs}`, ino: `${ino}` };
}

/** The stats of all files of a folder, in the order of their paths. */
export function treeStat(dir: string): FileStat[] {
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory());
  const paths = files.map((entry) => join(entry.parentPath, entry.name).slice(dir.length + 1)).sort();
  return paths.map((path) => fileStat(join(dir, path), path));
}
