import { lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
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
  const bytes = readProgram(where) ?? notText(where, `at most ${MAX_TEXT_BYTES} bytes`, 'a larger file');
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    return notText(where, 'UTF-8 text', 'other bytes', cause);
  }
}

/** The file's bytes; undefined when there are more than a program may have. */
function readProgram(where: string): Buffer | undefined {
  try {
    const stat = statSync(where);
    if (stat.isFile()) return stat.size > MAX_TEXT_BYTES ? undefined : readFileSync(where);
  } catch (error) {
    if (isSystemError(error)) throw missing(where, String(error.code), error);
    throw error;
  }
  throw missing(where, 'something that is no file');
}

function notText(where: string, expected: string, found: string, cause?: unknown): never {
  throw new MilError('MIL_SYNTAX', `${where}: expected ${expected}, found ${found}`, { expected, found, where, cause });
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
  const paths = files.map((entry) => relative(dir, join(entry.parentPath, entry.name))).sort();
  return paths.map((path) => fileStat(join(dir, path), path));
}
