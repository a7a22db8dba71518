import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { decodeText } from '../../schemas/door.js';
import type { Manifest } from '../../schemas/generated/types.js';
import { type JsonObject, parseJson } from '../../schemas/json.js';
import { COMPILED, MANIFEST } from '../paths.js';
import { checkTree, parseManifest } from '../read.js';
import { comparePaths, digestEntries, type HashedEntry, type TreeDigest } from '../tree.js';
import { ArchiveError } from './errors.js';
import { Inflater, openRegular, type ReadFile, readPieces } from './gunzip.js';
import { type Member, MemberRules } from './members.js';
import { type MemberSink, TarReader } from './tar-reader.js';

export interface UnpackOptions {
  /** Folder that takes `model.mlmodelc`; it must exist. Without it nothing is written. */
  readonly into?: string;
  /** Called with the manifest once it has been read, often before the model; what it throws ends the reading. */
  readonly onManifest?: (manifest: Manifest) => void | Promise<void>;
}

export interface ReadOptions extends UnpackOptions {
  readonly signal: AbortSignal;
  /** SHA-256 the file must have. */
  readonly sha256?: string;
}

/** An archive that was read to its end and holds what its manifest says. */
export interface ReadArchive {
  readonly sha256: string;
  readonly bytes: number;
  readonly manifest: Manifest;
  /** The manifest with its keys in their order and its numbers as they are written. */
  readonly record: JsonObject;
  /** Members in the archive's order. */
  readonly members: readonly Member[];
  /** Hashes of the model's tree, from the bytes as they were unpacked. */
  readonly tree: TreeDigest;
}

/**
 * Reads an archive in one pass: the file's SHA-256, inflate, tar, each member against the allow-list, each file's
 * SHA-256 while it is written, both tree hashes (protocol §11.2). What was written before an error is the caller's to
 * remove. Throws ArchiveError for what is no archive of an artifact, ArtifactIntegrityError for one whose manifest and
 * model contradict each other.
 */
export async function readArchive(path: string, options: ReadOptions): Promise<ReadArchive> {
  const opened = await openRegular(path);
  const reader = new ArchiveReader(path, opened.size, options);
  try {
    const read = await readPieces(opened, options.signal, (piece) => reader.push(piece));
    await reader.inflated();
    if (options.sha256 !== undefined && options.sha256 !== read.sha256)
      throw new ArchiveError('ARCHIVE_DIGEST', 'the file is not the one that was asked for', {
        where: path,
        expected: options.sha256,
        found: read.sha256,
        hint: 'copy or download the archive again',
      });
    return reader.finish(read);
  } finally {
    await reader.close();
    await opened.file.close();
  }
}

/** The same for an archive whose bytes come from elsewhere, piece by piece, and are hashed there. */
export class ArchiveReader {
  readonly #where: string;
  readonly #unpacker: Unpacker;
  readonly #tar: TarReader;
  readonly #inflater: Inflater;

  /** @param size Bytes of the whole archive. */
  constructor(where: string, size: number, options: UnpackOptions) {
    this.#where = where;
    this.#unpacker = new Unpacker(where, options);
    this.#tar = new TarReader(new MemberRules(), this.#unpacker);
    this.#inflater = new Inflater(where, size, (piece) => this.#tar.push(piece));
  }

  /** The next bytes; they must stay valid. Throws as soon as the archive is refused. */
  push(piece: Buffer): Promise<void> {
    return this.#inflater.push(piece);
  }

  /** Resolves when all that was pushed is whole gzip data. */
  inflated(): Promise<void> {
    return this.#inflater.finish();
  }

  /** What the archive held; call it after `inflated`, with the digest and number of the bytes that were pushed. */
  finish({ sha256, bytes }: ReadFile): ReadArchive {
    this.#tar.finish();
    const { manifest, record, members } = this.#unpacker;
    const tree = this.#unpacker.tree();
    checkTree(manifest!, tree, this.#where);
    return { sha256, bytes, manifest: manifest!, record: record!, members, tree };
  }

  /** Closes what is open, whatever became of it. */
  async close(): Promise<void> {
    await this.#inflater.close();
    await this.#unpacker.abandon();
  }
}

/** So many bytes are left to the system before it is asked to start writing them. */
const FLUSH_EVERY = 32 << 20;

/** Writes members below a folder and hashes them on the way; keeps the manifest. */
class Unpacker implements MemberSink {
  readonly members: Member[] = [];
  manifest: Manifest | undefined;
  record: JsonObject | undefined;
  readonly #path: string;
  readonly #options: UnpackOptions;
  readonly #entries = new Map<string, HashedEntry>();
  #member: Member | undefined;
  #hash: Hash | undefined;
  #file: FileHandle | undefined;
  #text: Buffer[] = [];
  #written: Promise<unknown> = Promise.resolve();
  #flushed: Promise<unknown> = Promise.resolve();
  #unflushed = 0;

  constructor(path: string, options: UnpackOptions) {
    this.#path = path;
    this.#options = options;
  }

  async open(member: Member): Promise<void> {
    this.members.push(member);
    this.#member = member;
    if (member.path === MANIFEST) return;
    await this.#makeFolders(member.folder ? member.path : dirname(member.path));
    if (member.folder) return;
    this.#hash = createHash('sha256');
    if (this.#options.into !== undefined) this.#file = await open(join(this.#options.into, member.path), 'wx', 0o644);
  }

  /** The previous piece is written while this one is hashed. */
  async write(piece: Buffer): Promise<void> {
    if (this.#hash === undefined) {
      this.#text.push(Buffer.from(piece));
      return;
    }
    const before = this.#written;
    if (this.#file) this.#written = before.then(() => writeWhole(this.#file!, piece));
    this.#written.catch(() => undefined);
    this.#hash.update(piece);
    await before;
    this.#unflushed += piece.length;
    if (this.#unflushed >= FLUSH_EVERY) this.#flush();
  }

  /** The disk begins early, so that flushing the whole tree before it is published takes little more. */
  #flush(): void {
    const file = this.#file;
    this.#unflushed = 0;
    if (file) this.#flushed = this.#flushed.then(() => file.datasync());
    this.#flushed.catch(() => undefined);
  }

  async close(): Promise<void> {
    const member = this.#member!;
    if (member.path === MANIFEST) return this.#readManifest(Buffer.concat(this.#text));
    if (member.folder) return;
    await Promise.all([this.#written, this.#flushed]);
    await this.abandon();
    const path = member.path.slice(COMPILED.length + 1);
    this.#entries.set(path, { path, folder: false, bytes: member.bytes, digest: this.#hash!.digest() });
    this.#hash = undefined;
  }

  /** Closes the file that is open, whatever became of it. */
  async abandon(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await Promise.allSettled([this.#written, this.#flushed]);
    await file?.close();
  }

  /** Both hashes: files, and the folders that are listed or implied. */
  tree(): TreeDigest {
    return digestEntries([...this.#entries.values()].sort((a, b) => comparePaths(a.path, b.path)));
  }

  async #makeFolders(path: string): Promise<void> {
    if (this.#options.into !== undefined) await mkdir(join(this.#options.into, path), { recursive: true, mode: 0o755 });
    for (let folder = path; folder !== COMPILED; folder = dirname(folder)) {
      const below = folder.slice(COMPILED.length + 1);
      this.#entries.set(below, { path: below, folder: true });
    }
  }

  async #readManifest(bytes: Buffer): Promise<void> {
    const where = `${this.#path}: ${MANIFEST}`;
    this.manifest = parseManifest(bytes, where);
    this.record = parseJson(decodeText(bytes, where)) as JsonObject;
    await this.#options.onManifest?.(this.manifest);
  }
}

async function writeWhole(file: FileHandle, piece: Buffer): Promise<void> {
  for (let at = 0; at < piece.length; ) at += (await file.write(piece, at, piece.length - at)).bytesWritten;
}
