import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncPath } from '../durable.js';
import { type ContentDigest, startHash } from './digest.js';
import { HubError } from './errors.js';
import { displayUrl, type HubResponse, type HubTransport } from './transport.js';

/** What a file must be before it counts as downloaded. */
export interface ExpectedContent {
  readonly size: number;
  readonly digests: readonly ContentDigest[];
}

/** Bytes of a body that are kept to tell what it is. */
const HEAD_BYTES = 512;
/** A failed try that got this much further does not count as one. */
const PROGRESS_BYTES = 1 << 20;

/** Name of a download's temporary file: unique, so that two processes never write into one. */
export const temporaryName = (target: string): string =>
  `${target}.${process.pid}-${randomBytes(4).toString('hex')}.incomplete`;
export const TEMPORARY_NAME = /\.[0-9]+-[0-9a-f]{8}\.incomplete$/;

/**
 * Downloads one file. It gets its name by a rename, after its size and digests were found right and its bytes are on
 * disk; on failure nothing is left. A cut or stalled transfer goes on where it stopped.
 *
 * @param onBytes told the number of bytes received so far
 * @throws HubError, from the transport or HUB_HTML, HUB_POINTER, HUB_SHORT or HUB_CORRUPT; the system's errors
 */
export async function downloadFile(
  transport: HubTransport,
  url: URL,
  target: string,
  expected: ExpectedContent,
  onBytes: (received: number) => void = () => {},
): Promise<void> {
  const temporary = temporaryName(target);
  const file = await open(temporary, 'wx', 0o644);
  try {
    const receiver = new Receiver(file, url, expected, onBytes);
    await transport.retrying(
      () => receiver.attempt(transport),
      () => receiver.advanced(),
    );
    receiver.check();
    await file.sync();
    await file.close();
    await rename(temporary, target);
  } catch (error) {
    await file.close();
    await rm(temporary, { force: true });
    throw error;
  }
  await syncPath(dirname(target));
}

/** Writes a body to a file over one or more tries, and hashes it on the way. */
class Receiver {
  private readonly file: FileHandle;
  private readonly url: URL;
  private readonly expected: ExpectedContent;
  private readonly onBytes: (received: number) => void;
  private hashes: ReturnType<typeof startHash>[] = [];
  private head = Buffer.alloc(0);
  private received = 0;
  private mark = 0;

  constructor(file: FileHandle, url: URL, expected: ExpectedContent, onBytes: (received: number) => void) {
    this.file = file;
    this.url = url;
    this.expected = expected;
    this.onBytes = onBytes;
  }

  async attempt(transport: HubTransport): Promise<void> {
    const resume = this.received > 0;
    const response = await transport.get(this.url, resume ? { range: `bytes=${this.received}-` } : {});
    const range = response.status === 206 ? (response.headers.get('content-range') ?? '') : '';
    if (!resume || !range.startsWith(`bytes ${this.received}-`)) await this.restart();
    try {
      await this.receive(response);
    } catch (error) {
      // Nothing is missing: the connection broke after the last byte.
      if (this.received !== this.expected.size) throw error;
    } finally {
      await response.cancel();
    }
  }

  /** True when the bytes grew by a fair amount since this was last asked. */
  advanced(): boolean {
    const grown = this.received - this.mark;
    this.mark = this.received;
    return grown >= PROGRESS_BYTES;
  }

  /** Refuses a content that is not the expected one, and says what it is instead. */
  check(): void {
    const { size, digests } = this.expected;
    const wrong = digests.find(({ hex }, i) => this.hashes[i]?.digest('hex') !== hex);
    if (this.received === size && !wrong) return;
    throw wrongContent(this.head, this.received, size, wrong, displayUrl(this.url));
  }

  private async restart(): Promise<void> {
    await this.file.truncate(0);
    this.received = 0;
    this.mark = 0;
    this.head = Buffer.alloc(0);
    this.hashes = this.expected.digests.map(({ algorithm }) => startHash(algorithm, this.expected.size));
  }

  private async receive(response: HubResponse): Promise<void> {
    for (let chunk = await response.next(); chunk; chunk = await response.next()) {
      if (this.head.length < HEAD_BYTES) this.head = Buffer.concat([this.head, chunk.subarray(0, HEAD_BYTES)]);
      for (const hash of this.hashes) hash.update(chunk);
      for (let at = 0; at < chunk.length; ) {
        at += (await this.file.write(chunk, at, chunk.length - at, this.received + at)).bytesWritten;
      }
      this.received += chunk.length;
      this.onBytes(this.received);
      if (this.received > this.expected.size) return;
    }
  }
}

function wrongContent(
  head: Buffer,
  bytes: number,
  size: number,
  wrong: ContentDigest | undefined,
  where: string,
): HubError {
  const text = head.toString('latin1').trimStart().toLowerCase();
  const facts = { where, expected: `${size} bytes` };
  if (text.startsWith('<!doctype') || text.startsWith('<html')) {
    return new HubError('HUB_HTML', 'a web page came instead of the file', {
      ...facts,
      found: 'HTML',
      hint: 'a sign-in page or proxy may answer in the place of the hub: open the URL in a browser',
    });
  }
  if (text.startsWith('version https://git-lfs')) {
    const hint = 'the endpoint (HF_ENDPOINT) does not serve large files: use another one';
    return new HubError('HUB_POINTER', 'a Git LFS pointer came instead of the file', {
      ...facts,
      found: 'pointer',
      hint,
    });
  }
  const hint = 'try again; if it stays so, the endpoint (HF_ENDPOINT) or a proxy alters what it serves';
  if (bytes !== size) {
    const found = bytes > size ? `more than ${size} bytes` : `${bytes} bytes`;
    const code = bytes > size ? 'HUB_CORRUPT' : 'HUB_SHORT';
    return new HubError(code, `the file should have ${size} bytes, ${found} came`, { ...facts, found, hint });
  }
  return new HubError('HUB_CORRUPT', 'the content is not the one the listing promises', {
    where,
    expected: `${wrong?.algorithm} ${wrong?.hex}`,
    found: `${bytes} other bytes`,
    hint,
  });
}
