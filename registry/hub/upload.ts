import { open } from 'node:fs/promises';
import { HubError } from './errors.js';
import { displayUrl } from './reply.js';
import type { HubTransport } from './transport.js';

/** A file whose content goes to the hub's store of large files. */
export interface LargeFile {
  readonly path: string;
  readonly sha256: string;
  readonly bytes: number;
}

interface LfsAction {
  readonly href: string;
  readonly header: Readonly<Record<string, string>>;
}

interface LfsObject {
  readonly oid: string;
  readonly upload?: LfsAction;
  readonly verify?: LfsAction;
}

const LFS_JSON = 'application/vnd.git-lfs+json';
const READ = 512 << 10;

/**
 * Uploads contents that the hub does not have yet, named by the digests that they were written with. Nothing points to
 * them before a commit does. Each request is repeated as the transport says; a content is read again for that, not
 * hashed.
 *
 * @param onBytes told the bytes of one file that went out so far
 * @throws HubError
 */
export async function uploadLarge(
  transport: HubTransport,
  repo: string,
  branch: string,
  file: LargeFile,
  onBytes: (sent: number) => void,
): Promise<void> {
  const object = await transport.retrying(() => askForUpload(transport, repo, branch, file));
  if (!object.upload) return onBytes(file.bytes);
  if (object.upload.header.chunk_size === undefined) await putWhole(transport, file, object.upload, onBytes);
  else await putParts(transport, file, object.upload, onBytes);
  const { verify } = object;
  if (!verify) return;
  const url = new URL(verify.href);
  await transport.retrying(() =>
    transport.post(url, JSON.stringify({ oid: file.sha256, size: file.bytes }), LFS_JSON, verify.header),
  );
}

async function askForUpload(transport: HubTransport, repo: string, branch: string, { sha256, bytes }: LargeFile) {
  const [owner = '', name = ''] = repo.split('/');
  const url = transport.url([owner, `${name}.git`, 'info', 'lfs', 'objects', 'batch']);
  const body = {
    operation: 'upload',
    transfers: ['basic', 'multipart'],
    objects: [{ oid: sha256, size: bytes }],
    hash_algo: 'sha256',
    ref: { name: branch },
  };
  const reply = await transport.post(url, JSON.stringify(body), LFS_JSON);
  return parseObject(reply, sha256, displayUrl(url));
}

function parseObject(reply: unknown, oid: string, where: string): LfsObject {
  const objects = isRecord(reply) && Array.isArray(reply.objects) ? (reply.objects as unknown[]) : [];
  const found = objects.find((one) => isRecord(one) && one.oid === oid);
  if (!isRecord(found) || found.error !== undefined)
    throw new HubError('HUB_UPLOAD', 'the hub does not take the file', {
      where,
      found: isRecord(found) && isRecord(found.error) ? (found.error.code ?? 'an error') : 'no answer about it',
    });
  const actions = isRecord(found.actions) ? found.actions : {};
  const [upload, verify] = [actions.upload, actions.verify].map((one) => parseAction(one, where));
  return { oid, ...(upload ? { upload } : {}), ...(verify ? { verify } : {}) };
}

function parseAction(value: unknown, where: string): LfsAction | undefined {
  if (value === undefined || value === null) return undefined;
  if (isRecord(value) && typeof value.href === 'string' && URL.canParse(value.href)) {
    const header = isRecord(value.header) ? value.header : {};
    return { href: value.href, header: Object.fromEntries(Object.entries(header).map(([k, v]) => [k, String(v)])) };
  }
  throw new HubError('HUB_UPLOAD', 'the hub names no valid place for the file', { where, expected: 'an http(s) URL' });
}

async function putWhole(transport: HubTransport, file: LargeFile, { href, header }: LfsAction, onBytes: OnBytes) {
  const url = new URL(href);
  const headers = { ...header, 'content-length': String(file.bytes) };
  await transport.retrying(() => put(transport, url, headers, () => contentOf(file.path, 0, file.bytes, onBytes)));
}

/** Parts of `chunk_size` bytes to the URLs under "1", "2", ..., then their ETags to the action's own URL. */
async function putParts(transport: HubTransport, file: LargeFile, { href, header }: LfsAction, onBytes: OnBytes) {
  const size = Number(header.chunk_size);
  const urls = Object.keys(header)
    .filter((name) => /^[0-9]+$/.test(name))
    .sort((a, b) => Number(a) - Number(b))
    .map((name) => header[name]!);
  if (!(size > 0) || urls.length !== Math.ceil(file.bytes / size) || !urls.every((url) => URL.canParse(url)))
    throw new HubError('HUB_UPLOAD', 'the hub divides the file in a way that does not fit', {
      where: displayUrl(new URL(href)),
      expected: `parts for ${file.bytes} bytes`,
      found: `${urls.length} of ${header.chunk_size}`,
    });
  const parts: { partNumber: number; etag: string }[] = [];
  for (const [i, url] of urls.entries()) {
    const from = i * size;
    const bytes = Math.min(size, file.bytes - from);
    const headers = { 'content-length': String(bytes) };
    const send = () => contentOf(file.path, from, bytes, (sent) => onBytes(from + sent));
    const etag = await transport.retrying(() => put(transport, new URL(url), headers, send));
    parts.push({ partNumber: i + 1, etag });
  }
  const done = JSON.stringify({ oid: file.sha256, parts });
  await transport.retrying(() => transport.post(new URL(href), done, LFS_JSON));
}

type OnBytes = (sent: number) => void;

async function put(
  transport: HubTransport,
  url: URL,
  headers: Record<string, string>,
  body: () => AsyncIterable<Uint8Array>,
): Promise<string> {
  const response = await transport.request(url, { method: 'PUT', headers, body });
  await response.cancel();
  return response.headers.get('etag') ?? '';
}

async function* contentOf(path: string, from: number, bytes: number, onBytes: OnBytes): AsyncGenerator<Uint8Array> {
  const file = await open(path, 'r');
  try {
    for (let sent = 0; sent < bytes; ) {
      const length = Math.min(READ, bytes - sent);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, from + sent);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
      sent += bytesRead;
      onBytes(sent);
    }
  } finally {
    await file.close();
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
