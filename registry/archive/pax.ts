import { ArchiveError } from './errors.js';

/** Largest extended header or long name that is read, in bytes. */
export const MAX_EXTENSION = 16 << 10;

/** Keywords that say nothing about what is unpacked. Python writes `mtime`, Apple's tar the others. */
const IGNORED = new Set(['mtime', 'atime', 'ctime', 'uid', 'gid', 'uname', 'gname', 'LIBARCHIVE.creationtime']);

/** What extensions before a header overrule. */
export interface Overrides {
  path?: string;
  size?: number;
}

/**
 * Reads a pax extended header: records `<length> <keyword>=<value>\n`. A keyword that is neither a path, a size nor
 * harmless is refused: sparse files, links and extended attributes are no part of an artifact.
 */
export function parsePax(content: Buffer): Overrides {
  const found = new Map<string, string>();
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(0x20, at);
    const digits = space < 0 || space - at > 6 ? '' : content.toString('latin1', at, space);
    const end = at + Number(digits);
    const record = content.toString('latin1', space + 1, end - 1);
    const equals = record.indexOf('=');
    if (
      !/^[1-9][0-9]*$/.test(digits) ||
      end > content.length ||
      end <= space ||
      content[end - 1] !== 0x0a ||
      equals < 1
    )
      throw refused('an extended header is malformed', content.toString('latin1', at, at + 40));
    const keyword = record.slice(0, equals);
    if (found.has(keyword)) throw refused('an extended header has a keyword twice', keyword);
    found.set(keyword, record.slice(equals + 1));
    at = end;
  }
  return overridesOf(found);
}

function overridesOf(found: ReadonlyMap<string, string>): Overrides {
  const overrides: Overrides = {};
  for (const [keyword, value] of found) {
    if (keyword === 'path') overrides.path = value;
    else if (keyword === 'size') overrides.size = sizeOf(value);
    else if (!IGNORED.has(keyword))
      throw refused('an extended header has a keyword that artifacts do not need', keyword);
  }
  return overrides;
}

function sizeOf(value: string): number {
  if (/^[0-9]{1,15}$/.test(value)) return Number(value);
  throw refused('an extended header has no size that can be read', value);
}

/** A GNU long name: the bytes up to a single NUL at the end. */
export function parseLongName(content: Buffer): Overrides {
  const end = content.indexOf(0);
  if (end >= 0 && end === content.length - 1) return { path: content.toString('latin1', 0, end) };
  throw refused('a long name is malformed', content.toString('latin1', 0, 40));
}

function refused(message: string, found: string): ArchiveError {
  const hint = /xattr/i.test(found) ? 'make it with `export`, or pack it without extended attributes' : undefined;
  return new ArchiveError('ARCHIVE_HEADER', message, {
    where: 'extended header',
    found,
    ...(hint === undefined ? {} : { hint }),
  });
}
