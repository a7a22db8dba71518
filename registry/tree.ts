import { createHash, type Hash } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isSystemError } from '../schemas/errors.js';
import { ArtifactIntegrityError } from './errors.js';
import { sha256Handle } from './sha256.js';

/** One regular file of a tree: POSIX path below the root, size in bytes, SHA-256 of the content (hex). */
export interface TreeFile {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** Both hashes of a tree and what they were made from. */
export interface TreeDigest {
  /** laya-apple tree v1 (protocol §4.1), hex. */
  readonly v1: string;
  /** laya-artifacts tree v2 (protocol §4.2), hex. */
  readonly v2: string;
  readonly bytes: number;
  readonly files: readonly TreeFile[];
}

export const TREE_V1 = 'laya-apple tree v1';
const TREE_V2 = 'laya-artifacts tree v2\n';
const MAX_ENTRIES = 100_000;

/**
 * Order of both hashes: by path components, each by code point. JavaScript compares UTF-16 units,
 * which puts U+1F600 before U+FF5E, so components are compared as code points.
 */
export function comparePaths(left: string, right: string): number {
  const a = left.split('/');
  const b = right.split('/');
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = compareCodePoints(a[i]!, b[i]!);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareCodePoints(left: string, right: string): number {
  const a = [...left];
  const b = [...right];
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = a[i]!.codePointAt(0)! - b[i]!.codePointAt(0)!;
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** An entry of a tree; a file's size, and the SHA-256 of its content as raw bytes. */
export type HashedEntry = TreeEntry & ({ readonly folder: true } | { readonly bytes: number; readonly digest: Buffer });

/** What was hashed already, so that one command reads a file that several trees share only once (protocol §10). */
export type HashMemo = Map<string, { readonly digest: Buffer; readonly bytes: number }>;

/**
 * Hashes a `model.mlmodelc` tree in one pass over its bytes.
 * Throws ArtifactIntegrityError: TREE_INVALID for links, devices, unreadable names or a tree that
 * changes meanwhile; TREE_INCOMPLETE when the folder is not there.
 */
export async function hashTree(root: string, memo: HashMemo = new Map()): Promise<TreeDigest> {
  const hashed: HashedEntry[] = [];
  for (const { path, folder } of await listTree(root))
    hashed.push(folder ? { path, folder } : { path, folder, ...(await hashRegularFile(root, path, memo)) });
  return digestEntries(hashed);
}

/** Both hashes from what was found out about each entry; `entries` are in hash order. */
export function digestEntries(entries: readonly HashedEntry[]): TreeDigest {
  const v1 = createHash('sha256');
  const v2 = createHash('sha256').update(TREE_V2);
  const files: TreeFile[] = [];
  let total = 0;
  for (const entry of entries) {
    if (!('digest' in entry)) {
      frame(v2, 'd', entry.path);
      continue;
    }
    const { path, bytes, digest } = entry;
    v1.update(path, 'utf8').update(digest);
    frame(v2, 'f', path);
    v2.update(uint64(bytes)).update(digest);
    files.push({ path, bytes, sha256: digest.toString('hex') });
    total += bytes;
  }
  return { v1: v1.digest('hex'), v2: v2.digest('hex'), bytes: total, files };
}

function frame(hash: Hash, type: 'd' | 'f', path: string): void {
  const name = Buffer.from(path, 'utf8');
  hash.update(type).update(uint64(name.length)).update(name);
}

function uint64(value: number): Buffer {
  const out = Buffer.allocUnsafe(8);
  out.writeBigUInt64LE(BigInt(value));
  return out;
}

/** One entry below a tree's root, by its POSIX path. */
export interface TreeEntry {
  readonly path: string;
  readonly folder: boolean;
}

/** Every entry below root in hash order. Names come as bytes, so that one that is not UTF-8 is refused, not mangled. */
export async function listTree(root: string): Promise<TreeEntry[]> {
  const found: TreeEntry[] = [];
  const pending = [''];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    for (const item of await listFolder(root, folder)) {
      const name = item.name.toString('utf8');
      const path = folder === '' ? name : `${folder}/${name}`;
      if (!Buffer.from(name, 'utf8').equals(item.name)) throw invalid(root, path, 'a name in UTF-8', 'other bytes');
      if (item.isDirectory()) pending.push(path);
      else if (!item.isFile()) throw invalid(root, path, 'a regular file or folder', 'a link or special file');
      found.push({ path, folder: item.isDirectory() });
      if (found.length > MAX_ENTRIES) throw invalid(root, path, `at most ${MAX_ENTRIES} entries`, 'more');
    }
  }
  return found.sort((a, b) => comparePaths(a.path, b.path));
}

async function listFolder(root: string, folder: string) {
  try {
    if (folder === '' && !(await lstat(root)).isDirectory()) throw invalid(root, '', 'a folder', 'something else');
    return await readdir(join(root, folder), { withFileTypes: true, encoding: 'buffer' });
  } catch (error) {
    if (folder !== '' || !isSystemError(error, 'ENOENT')) throw error;
    throw new ArtifactIntegrityError('TREE_INCOMPLETE', 'the model folder is missing', { where: root, cause: error });
  }
}

/** The size in the record is the count of bytes that were hashed, and it must be the size the file system tells. */
async function hashRegularFile(root: string, path: string, memo: HashMemo) {
  const file = await open(join(root, path), constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const before = identityOf(await file.stat({ bigint: true }));
    const known = memo.get(before);
    if (known) return known;
    const hashed = await sha256Handle(file);
    const stat = await file.stat({ bigint: true });
    if (Number(stat.size) !== hashed.bytes)
      throw invalid(root, path, `${stat.size} bytes`, `${hashed.bytes} bytes read`);
    if (identityOf(stat) === before) memo.set(before, hashed);
    return hashed;
  } finally {
    await file.close();
  }
}

const identityOf = ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;

function invalid(root: string, path: string, expected: string, found: string): ArtifactIntegrityError {
  const where = join(root, path);
  return new ArtifactIntegrityError('TREE_INVALID', `expected ${expected}, found ${found}`, { where, expected, found });
}
