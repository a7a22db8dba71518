import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const CRATE = 'mlmodelc-export-0.1.0.crate';

/** The compiler's source package: cargo keeps it when it installs the compiler, or fetches it again. */
function cratePath(): string {
  const kept = findCrate();
  if (kept) return kept;
  fetchCrate();
  const fetched = findCrate();
  if (fetched) return fetched;
  throw new Error(`cargo fetched ${CRATE} to another place than its cache`);
}

function findCrate(): string | undefined {
  const cache = join(process.env.CARGO_HOME || join(homedir(), '.cargo'), 'registry', 'cache');
  const indexes = existsSync(cache) ? readdirSync(cache) : [];
  return indexes.map((index) => join(cache, index, CRATE)).find((path) => existsSync(path));
}

function fetchCrate(): void {
  const project = mkdtempSync(join(tmpdir(), 'laya-crate-'));
  const about = '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n';
  writeFileSync(join(project, 'Cargo.toml'), `${about}[dependencies]\nmlmodelc-export = "=0.1.0"\n`);
  writeFileSync(join(project, 'lib.rs'), '');
  execFileSync('cargo', ['fetch', '--quiet'], { cwd: project });
  rmSync(project, { recursive: true });
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
