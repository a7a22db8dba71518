import { ArchiveError } from './errors.js';
import type { Member, MemberRules } from './members.js';
import { MAX_EXTENSION, type Overrides, parseLongName, parsePax } from './pax.js';
import { BLOCK, decodeHeader, type Header, paddingOf } from './tar-header.js';

/** Takes the members of an archive, one after the other. A folder is opened and closed without content. */
export interface MemberSink {
  open(member: Member): Promise<void>;
  /** The next bytes of the open file; they stay valid. */
  write(bytes: Buffer): Promise<void>;
  close(): Promise<void>;
}

/** What the next bytes are. */
type State = 'header' | 'extension' | 'content' | 'padding' | 'end' | 'after';

/**
 * A strict reader of tar, fed with pieces of any size. It takes what an artifact needs of ustar, pax and GNU tar and
 * refuses the rest, instead of skipping it as general readers do; a member reaches the sink only after the rules let
 * it pass. Memory: one block, or one extended header of 16 KiB.
 */
export class TarReader {
  readonly #rules: MemberRules;
  readonly #sink: MemberSink;
  #state: State = 'header';
  /** Bytes still to come in this state. */
  #left = BLOCK;
  #held: Buffer[] = [];
  #extension: Header | undefined;
  #overrides: Overrides | undefined;
  #padding = 0;

  constructor(rules: MemberRules, sink: MemberSink) {
    this.#rules = rules;
    this.#sink = sink;
  }

  async push(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + (this.#state === 'after' ? chunk.length : this.#left));
      at += part.length;
      this.#left -= part.length;
      await this.#take(part);
    }
  }

  /** Throws ArchiveError ARCHIVE_TRUNCATED unless the end-of-archive blocks have been read (fault A03). */
  finish(): void {
    if (this.#state !== 'after')
      throw new ArchiveError('ARCHIVE_TRUNCATED', 'the archive ends before its end mark', { found: this.#state });
    this.#rules.finish();
  }

  async #take(part: Buffer): Promise<void> {
    if (this.#state === 'content') await this.#sink.write(part);
    else if (this.#state === 'header' || this.#state === 'extension') this.#held.push(part);
    else requireZeros(part, this.#state);
    if (this.#left > 0 || this.#state === 'after') return;
    const block = Buffer.concat(this.#held);
    this.#held = [];
    if (this.#state === 'header') await this.#header(block);
    else if (this.#state === 'extension') this.#extend(block);
    else if (this.#state === 'content') await this.#closeMember();
    else if (this.#state === 'padding') this.#expect('header', BLOCK);
    else this.#expect('after', 0);
  }

  async #header(block: Buffer): Promise<void> {
    if (block.every((byte) => byte === 0)) {
      if (this.#overrides) throw misplaced('the archive ends after an extended header');
      return this.#expect('end', BLOCK);
    }
    const header = decodeHeader(block);
    if (header.type === 'x' || header.type === 'L') return this.#startExtension(header);
    const member = this.#rules.check(memberOf(header, this.#overrides));
    this.#overrides = undefined;
    this.#padding = paddingOf(member.bytes);
    await this.#sink.open(member);
    if (member.bytes === 0) await this.#closeMember();
    else this.#expect('content', member.bytes);
  }

  #startExtension(header: Header): void {
    if (this.#overrides) throw misplaced('two extended headers stand before one member');
    if (header.size === 0 || header.size > MAX_EXTENSION)
      throw new ArchiveError('ARCHIVE_LIMIT', 'an extended header is empty or too large', {
        expected: `1 to ${MAX_EXTENSION} bytes`,
        found: header.size,
      });
    this.#extension = header;
    this.#expect('extension', header.size + paddingOf(header.size));
  }

  #extend(block: Buffer): void {
    const { type, size } = this.#extension!;
    requireZeros(block.subarray(size), 'padding');
    this.#overrides = type === 'x' ? parsePax(block.subarray(0, size)) : parseLongName(block.subarray(0, size));
    this.#expect('header', BLOCK);
  }

  async #closeMember(): Promise<void> {
    await this.#sink.close();
    if (this.#padding > 0) this.#expect('padding', this.#padding);
    else this.#expect('header', BLOCK);
  }

  #expect(state: State, bytes: number): void {
    this.#state = state;
    this.#left = bytes;
  }
}

/** Header and overrides as one member; a size that is told twice in different ways is refused (fault A05). */
function memberOf(header: Header, overrides: Overrides | undefined): Member {
  const { type } = header;
  const name = overrides?.path ?? header.name;
  if (type !== '0' && type !== '5')
    throw new ArchiveError('ARCHIVE_TYPE', 'the archive holds something that is neither a file nor a folder', {
      where: name,
      expected: 'regular files and folders',
      found: TYPES[type] ?? `type ${JSON.stringify(type)}`,
    });
  if (overrides?.size !== undefined && overrides.size !== header.size)
    throw new ArchiveError('ARCHIVE_HEADER', 'a member has two sizes', {
      where: name,
      found: [header.size, overrides.size],
    });
  const folder = type === '5';
  return { path: folder && name.endsWith('/') ? name.slice(0, -1) : name, folder, bytes: header.size };
}

const TYPES: Readonly<Record<string, string>> = {
  1: 'a hard link',
  2: 'a symbolic link',
  3: 'a character device',
  4: 'a block device',
  6: 'a fifo',
  7: 'a contiguous file',
  D: 'a GNU directory dump',
  K: 'a long link target',
  S: 'a sparse file',
  V: 'a volume label',
  g: 'a global extended header',
};

function requireZeros(part: Buffer, state: string): void {
  if (part.every((byte) => byte === 0)) return;
  if (state === 'padding') throw new ArchiveError('ARCHIVE_HEADER', 'the padding after a member is not empty');
  throw new ArchiveError('ARCHIVE_TRAILING', "something follows the archive's end", { expected: 'zero padding' });
}

function misplaced(message: string): ArchiveError {
  return new ArchiveError('ARCHIVE_HEADER', message);
}
