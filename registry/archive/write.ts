import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isSystemError } from '../../schemas/errors.js';
import type { Manifest } from '../../schemas/generated/types.js';
import { temporarySibling, writeFileDurably } from '../durable.js';
import { ArtifactIntegrityError } from '../errors.js';
import { type ArtifactKey, COMPILED, MANIFEST } from '../paths.js';
import { checkManifest, checkTree, parseManifest } from '../read.js';
import { digestEntries, type HashedEntry, listTree } from '../tree.js';
import { ArchiveError } from './errors.js';
import { GzipWriter } from './gzip-writer.js';
import { LIMITS, type Member, MemberRules } from './members.js';
import { BLOCK, encodeHeader, paddingOf } from './tar-header.js';

export interface WriteOptions {
  /** Threads that compress; 0: this one does it. The bytes are the same. */
  readonly threads: number;
  readonly signal: AbortSignal;
}

/** An archive under its final name, and the file `<path>.sha256` beside it. */
export interface WrittenArchive {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly artifactSha256: string;
}

const READ = 512 << 10;
/** So many bytes are left to the system before it is asked to start writing them. */
const FLUSH_EVERY = 32 << 20;
/** Below so many bytes starting threads takes longer than compressing. */
const WORTH_THREADS = 4 << 20;

/**
 * Writes an artifact folder as a deterministic `.tar.gz` at `target` (protocol §11.1). Each file is read once: the bytes
 * that go into the archive are the bytes that are hashed, and when the hashes are not the manifest's, nothing is left.
 * Throws Artifact*Error for an artifact that is not whole, ArchiveError for names no archive may hold.
 */
export async function writeArchive(
  key: ArtifactKey,
  folder: string,
  target: string,
  options: WriteOptions,
): Promise<WrittenArchive> {
  const temporary = temporarySibling(target);
  try {
    const written = await writeTemporary(key, folder, temporary, options);
    await writable(target, () => publish(temporary, target, written.sha256));
    return { path: target, ...written };
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** From the rename on the archive is there; sums of an older one never stand beside it. */
async function publish(temporary: string, target: string, sha256: string): Promise<void> {
  const sums = `${target}.sha256`;
  await rm(sums, { force: true });
  await rename(temporary, target);
  await writeFileDurably(sums, `${sha256}  ${basename(target)}\n`);
}

/** Runs a step that writes at the target; the system's refusals become ArchiveError ARCHIVE_UNWRITABLE. */
async function writable<T>(target: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ArchiveError('ARCHIVE_UNWRITABLE', `the archive can't be written (${error.code})`, {
      where: target,
      hint: 'name another place with --out, or make room there',
      cause: error,
    });
  }
}

async function writeTemporary(key: ArtifactKey, folder: string, temporary: string, options: WriteOptions) {
  const { manifest, bytes: record } = await readManifest(key, join(folder, MANIFEST));
  const members = await listMembers(folder, record.length);
  const total = members.reduce((sum, { bytes }) => sum + bytes, 0);
  const file = await writable(temporary, () => open(temporary, 'wx', 0o644));
  const out = new HashedFile(file);
  const gzip = new GzipWriter(total < WORTH_THREADS ? 0 : options.threads, (bytes) =>
    writable(temporary, () => out.write(bytes)),
  );
  try {
    const entries: HashedEntry[] = [];
    for (const member of members) {
      await gzip.write(encodeHeader(member));
      if (member.path === MANIFEST) await gzip.write(record);
      else if (member.path !== COMPILED) entries.push(await writeMember(folder, member, gzip, options.signal));
      await gzip.write(Buffer.alloc(paddingOf(member.bytes)));
    }
    checkTree(manifest, digestEntries(entries), join(folder, COMPILED));
    await gzip.write(Buffer.alloc(2 * BLOCK));
    await gzip.end();
    const written = await writable(temporary, () => out.end());
    if (total > LIMITS.ratioFrom && total > LIMITS.ratio * written.bytes) throw tooSmall(total, written.bytes);
    return { ...written, artifactSha256: manifest.integrity.artifact_sha256 };
  } finally {
    await gzip.close();
    await file.close();
  }
}

/** The manifest as its bytes stand on disk, and as checked from the same bytes. */
async function readManifest(key: ArtifactKey, path: string): Promise<{ manifest: Manifest; bytes: Buffer }> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const { bytesRead, buffer } = await file.read(
      Buffer.alloc(LIMITS.manifestBytes + 1),
      0,
      LIMITS.manifestBytes + 1,
      0,
    );
    const bytes = buffer.subarray(0, bytesRead);
    const manifest = parseManifest(bytes, path);
    checkManifest(key, manifest, path);
    return { manifest, bytes };
  } finally {
    await file.close();
  }
}

/** The members in the archive's order, each within the rules that the importer has. */
async function listMembers(folder: string, manifestBytes: number): Promise<Member[]> {
  const members: Member[] = [
    { path: MANIFEST, folder: false, bytes: manifestBytes },
    { path: COMPILED, folder: true, bytes: 0 },
  ];
  for (const entry of await listTree(join(folder, COMPILED))) {
    const path = `${COMPILED}/${entry.path}`;
    members.push({ path, folder: entry.folder, bytes: entry.folder ? 0 : (await stat(join(folder, path))).size });
  }
  const rules = new MemberRules();
  for (const member of members) rules.check(member);
  return members;
}

/** One member's content into the archive; its hash is that of the bytes that went there. */
async function writeMember(
  folder: string,
  member: Member,
  gzip: GzipWriter,
  signal: AbortSignal,
): Promise<HashedEntry> {
  const path = member.path.slice(COMPILED.length + 1);
  if (member.folder) return { path, folder: true };
  const file = await open(join(folder, member.path), constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const hash = createHash('sha256');
    const buffers = [Buffer.allocUnsafe(READ), Buffer.allocUnsafe(READ)] as const;
    let bytes = 0;
    let pending = file.read(buffers[0], 0, READ, 0);
    for (let turn = 0; ; turn ^= 1) {
      signal.throwIfAborted();
      const { bytesRead, buffer } = await pending;
      bytes += bytesRead;
      if (bytes > member.bytes || (bytesRead === 0 && bytes < member.bytes)) throw changed(member, bytes);
      if (bytesRead === 0) return { path, folder: false, bytes, digest: hash.digest() };
      pending = file.read(buffers[turn === 0 ? 1 : 0], 0, READ, bytes);
      const piece = buffer.subarray(0, bytesRead);
      hash.update(piece);
      await gzip.write(piece);
    }
  } finally {
    await file.close();
  }
}

function changed(member: Member, found: number): ArtifactIntegrityError {
  return new ArtifactIntegrityError('TREE_MISMATCH', 'a file changed while it was read', {
    where: member.path,
    expected: `${member.bytes} bytes`,
    found: `${found} bytes or more`,
    hint: 'run the command again',
  });
}

/** Weights that shrink so much are none, and the importer takes such an archive for a bomb. */
function tooSmall(found: number, archive: number): ArchiveError {
  return new ArchiveError('ARCHIVE_LIMIT', 'the artifact compresses far better than weights do', {
    expected: `at most ${LIMITS.ratio} times the archive's size`,
    found: `${found} bytes in ${archive}`,
  });
}

/** A file that is written from start to end, hashed meanwhile, and handed to the disk in the background. */
class HashedFile {
  readonly #file: FileHandle;
  readonly #hash = createHash('sha256');
  #bytes = 0;
  #unflushed = 0;
  #flushing: Promise<void> = Promise.resolve();

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async write(bytes: Uint8Array): Promise<void> {
    const written = this.#file.write(bytes, 0, bytes.length);
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
    await written;
    this.#unflushed += bytes.length;
    if (this.#unflushed < FLUSH_EVERY) return;
    this.#unflushed = 0;
    await this.#flushing;
    this.#flushing = this.#file.datasync();
    this.#flushing.catch(() => undefined);
  }

  async end(): Promise<{ bytes: number; sha256: string }> {
    await this.#flushing;
    await this.#file.sync();
    return { bytes: this.#bytes, sha256: this.#hash.digest('hex') };
  }
}
