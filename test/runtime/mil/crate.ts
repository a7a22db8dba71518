import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const CRATE = 'mlmodelc-export-0.1.0.crate';

/** The compiler's source package, which cargo keeps when it installs the compiler. */
function cratePath(): string {
  const cache = join(process.env.CARGO_HOME || join(homedir(), '.cargo'), 'registry', 'cache');
  const indexes = existsSync(cache) ? readdirSync(cache) : [];
  const found = indexes.map((index) => join(cache, index, CRATE)).find((path) => existsSync(path));
  if (found) return found;
  throw new Error(`${CRATE} is not under ${cache}: install the compiler with "laya-artifacts install-tools" first`);
}

function text(header: Buffer, start: number, length: number): string {
  return header.toString('latin1', start, start + length).replace(/\0.*$/, '');
}

/** The regular files of the compiler's source package, by path below its root. */
export function crateFiles(): Map<string, Buffer> {
  const tar = gunzipSync(readFileSync(cratePath()));
  const files = new Map<string, Buffer>();
  for (let at = 0; at + 512 <= tar.length && tar[at] !== 0; ) {
    const header = tar.subarray(at, at + 512);
    const size = Number.parseInt(text(header, 124, 12), 8);
    const prefix = text(header, 345, 155);
    const name = prefix === '' ? text(header, 0, 100) : `${prefix}/${text(header, 0, 100)}`;
    if (header[156] === 0x30) files.set(name.slice(name.indexOf('/') + 1), tar.subarray(at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return files;
}
