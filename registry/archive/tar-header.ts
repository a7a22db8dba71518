import { ArchiveError } from './errors.js';
import type { Member } from './members.js';

/** Everything in a tar is in blocks of so many bytes. */
export const BLOCK = 512;

/** Padding that follows so many bytes of content. */
export const paddingOf = (bytes: number): number => (BLOCK - (bytes % BLOCK)) % BLOCK;

/** What a header block says. `name` and `size` may be overruled by extensions before it. */
export interface Header {
  readonly name: string;
  readonly type: string;
  readonly size: number;
}

/**
 * The header block of a member: ustar, modes 0644 and 0755, no times, owners or names (protocol §11.1).
 * Throws ArchiveError ARCHIVE_NAME for a path that ustar has no room for.
 */
export function encodeHeader({ path, folder, bytes }: Member): Buffer {
  const header = Buffer.alloc(BLOCK);
  const [prefix, name] = splitPath(folder ? `${path}/` : path);
  header.write(name, 0, 'latin1');
  header.write(`${octal(folder ? 0o755 : 0o644, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`, 100, 'latin1');
  header.write(`${octal(bytes, 11)}\0${octal(0, 11)}\0        ${folder ? '5' : '0'}`, 124, 'latin1');
  header.write(`ustar\u000000`, 257, 'latin1');
  header.write(`${octal(0, 7)}\0${octal(0, 7)}\0`, 329, 'latin1');
  header.write(prefix, 345, 'latin1');
  header.write(`${octal(checksum(header), 6)}\0 `, 148, 'latin1');
  return header;
}

const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0');

/** ustar keeps 100 bytes of name and, before a slash, 155 of prefix. */
function splitPath(path: string): [prefix: string, name: string] {
  if (path.length <= 100) return ['', path];
  for (let at = path.indexOf('/'); at >= 0 && at < path.length - 1; at = path.indexOf('/', at + 1))
    if (at <= 155 && path.length - at - 1 <= 100) return [path.slice(0, at), path.slice(at + 1)];
  throw new ArchiveError('ARCHIVE_NAME', 'the path is too long for an archive', { where: path });
}

/** Sum of the block's bytes, its own field counted as spaces. */
function checksum(block: Uint8Array): number {
  let sum = 8 * 0x20;
  for (let i = 0; i < BLOCK; i++) if (i < 148 || i >= 156) sum += block[i]!;
  return sum;
}

/**
 * Reads a header block of the ustar, pax or GNU kind. Fields that two readers could take in different ways are
 * refused: other kinds, numbers that are not octal, bytes after a name's end.
 */
export function decodeHeader(block: Buffer): Header {
  const magic = block.toString('latin1', 257, 265);
  if (magic !== 'ustar\u000000' && magic !== 'ustar  \0') throw refused('magic', 'ustar', magic);
  const sum = number(block, 148, 8, 'checksum');
  if (sum !== checksum(block)) throw refused('checksum', checksum(block), sum);
  const name = text(block, 0, 100, 'name');
  const prefix = magic === 'ustar  \0' ? '' : text(block, 345, 155, 'prefix');
  const type = block[156] === 0 ? '0' : String.fromCharCode(block[156]!);
  return { name: prefix === '' ? name : `${prefix}/${name}`, type, size: number(block, 124, 12, 'size') };
}

function number(block: Buffer, at: number, length: number, field: string): number {
  const raw = block.toString('latin1', at, at + length);
  const digits = /^ *([0-7]+)[ \0]*$/.exec(raw)?.[1];
  if (digits === undefined) throw refused(field, 'an octal number', raw);
  return Number.parseInt(digits, 8);
}

function text(block: Buffer, at: number, length: number, field: string): string {
  const raw = block.subarray(at, at + length);
  const end = raw.indexOf(0);
  const used = end < 0 ? length : end;
  if (raw.subarray(used).some((byte) => byte !== 0))
    throw refused(field, 'nothing after its end', raw.toString('latin1'));
  return raw.toString('latin1', 0, used);
}

function refused(field: string, expected: unknown, found: unknown): ArchiveError {
  return new ArchiveError('ARCHIVE_HEADER', `a tar header can't be used: its ${field}`, {
    where: field,
    expected,
    found,
  });
}
