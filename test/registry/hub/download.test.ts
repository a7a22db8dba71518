import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { downloadFile } from '../../../registry/hub/download.js';
import { hubFetch } from '../../../registry/hub/fetch.js';
import { hubSettings } from '../../../registry/hub/settings.js';
import { HubTransport, type TransportOptions } from '../../../registry/hub/transport.js';
import { type Fault, html } from '../../hub/replies.js';
import { gitSha1, pointerText, sha256 } from '../../hub/repos.js';
import { TestHub } from '../../hub/server.js';
import { failure, inFolder, quickClock } from './fixture.js';

const BYTES = Buffer.from(Array.from({ length: 1000 }, (_, i) => (i * 7) % 251));
const FLIPPED = Buffer.from(BYTES).fill(0, 500, 501);
const EXPECTED = { size: BYTES.length, digests: [{ algorithm: 'sha256', hex: sha256(BYTES) }] } as const;
const SOURCE = ['owner', 'model', 'resolve', 'main', 'model.safetensors'];

let hub: TestHub;
beforeAll(async () => {
  hub = await TestHub.start();
});
afterAll(() => hub.close());
let gates: { at: number; open: () => void }[] = [];
afterEach(() => {
  hub.reset();
  gates = [];
});

/** A cut after `bytes` of a body, once the client has written `at` bytes in all. */
function cut(bytes: number, at = bytes): Fault {
  const until = new Promise<void>((open) => gates.push({ at, open }));
  return { kind: 'cut', after: bytes, until };
}

async function transport(options: Partial<TransportOptions> = {}): Promise<HubTransport> {
  const settings = hubSettings({}, { endpoint: hub.url });
  return new HubTransport(settings, { fetch: await hubFetch(undefined), ...quickClock(), ...options });
}

/** Downloads the weights of a fresh repository whose content requests meet these faults. */
async function download(
  target: string,
  faults: Fault[],
  bytes = BYTES,
  expected = EXPECTED as Parameters<typeof downloadFile>[3],
) {
  hub.repository('owner/model').commit({ 'model.safetensors': bytes });
  hub.failNext(/GET \/lfs/, ...faults);
  const one = await transport(faults.some(({ kind }) => kind === 'stall') ? { inactivityMs: 250 } : {});
  const seen: number[] = [];
  await downloadFile(one, one.url(SOURCE), target, expected, (received) => {
    seen.push(received);
    for (const { at, open } of gates) if (received >= at) open();
  });
  return seen;
}

const ranges = () => hub.arrivals.filter(({ at }) => at === 'content').map(({ headers }) => headers.range);

describe('downloadFile', () => {
  test('gives a file its name when its bytes are right, and leaves nothing else', () =>
    inFolder(async (folder) => {
      const seen = await download(join(folder, 'blob'), []);
      expect(await readdir(folder)).toEqual(['blob']);
      expect(await readFile(join(folder, 'blob'))).toEqual(BYTES);
      expect(seen.at(-1)).toBe(1000);
    }));

  test('replaces what stands there', () =>
    inFolder(async (folder) => {
      await writeFile(join(folder, 'blob'), 'rubbish');
      await download(join(folder, 'blob'), []);
      expect(await readFile(join(folder, 'blob'))).toEqual(BYTES);
    }));

  test('checks a plain file by the digest git gives it', () =>
    inFolder(async (folder) => {
      const bytes = Buffer.from('{"a": 1}\n');
      hub.repository('owner/model').commit({ 'config.json': bytes });
      const one = await transport();
      const url = one.url(['owner', 'model', 'resolve', 'main', 'config.json']);
      const digests = [{ algorithm: 'git-sha1', hex: gitSha1(bytes) }] as const;
      await downloadFile(one, url, join(folder, 'blob'), { size: bytes.length, digests });
      const wrong = [...digests, { algorithm: 'sha256', hex: '0'.repeat(64) }] as const;
      const error = await failure(
        downloadFile(one, url, join(folder, 'other'), { size: bytes.length, digests: wrong }),
      );
      expect(error).toMatchObject({ code: 'HUB_CORRUPT' });
      expect(await readdir(folder)).toEqual(['blob']);
    }));

  // F24: sizes at the edge.
  test.each([0, 1])('takes a file of %d bytes', (size) =>
    inFolder(async (folder) => {
      const bytes = Buffer.alloc(size, 'x');
      const digests = [{ algorithm: 'sha256', hex: sha256(bytes) }] as const;
      await download(join(folder, 'blob'), [], bytes, { size, digests });
      expect(await readFile(join(folder, 'blob'))).toEqual(bytes);
    }),
  );

  // F19, F24: a mirror may send neither length nor ETag, or a wrong one; the listing decides.
  test.each<[string, Fault]>([
    ['no length and no ETag', { kind: 'headers', headers: { 'content-length': undefined, etag: undefined } }],
    ['a wrong ETag', { kind: 'headers', headers: { etag: '"0000"' } }],
    [
      'compression that nobody asked for',
      { kind: 'reply', status: 200, headers: { 'content-encoding': 'gzip' }, body: gzipSync(BYTES) },
    ],
  ])('takes the right bytes with %s', (_name, fault) =>
    inFolder(async (folder) => {
      await download(join(folder, 'blob'), [fault]);
      expect(await readFile(join(folder, 'blob'))).toEqual(BYTES);
    }),
  );

  // F01, F03: nothing but the right bytes gets the name, and the message says what came.
  test.each<[string, string, Fault]>([
    ['HUB_HTML', 'a web page', { kind: 'reply', status: 200, headers: { 'content-type': 'text/html' }, body: html }],
    ['HUB_HTML', 'a web page without its type', { kind: 'reply', status: 200, body: `\n ${html}` }],
    ['HUB_HTML', 'a web page of the right size', { kind: 'reply', status: 200, body: html.padEnd(1000) }],
    ['HUB_HTML', 'a web page that is larger', { kind: 'reply', status: 200, body: html.padEnd(9000) }],
    ['HUB_POINTER', 'an LFS pointer', { kind: 'reply', status: 200, body: pointerText(BYTES) }],
    ['HUB_SHORT', 'half of the bytes as a whole', { kind: 'reply', status: 200, body: BYTES.subarray(0, 500) }],
    ['HUB_SHORT', 'nothing', { kind: 'reply', status: 200, body: '' }],
    ['HUB_CORRUPT', 'one byte more', { kind: 'reply', status: 200, body: Buffer.concat([BYTES, Buffer.of(0)]) }],
    ['HUB_CORRUPT', 'one byte flipped', { kind: 'reply', status: 200, body: FLIPPED }],
    ['HUB_NOT_FOUND', '404', { kind: 'reply', status: 404 }],
  ])('refuses with %s when %s comes', (code, _name, fault) =>
    inFolder(async (folder) => {
      await writeFile(join(folder, 'blob'), 'what was there before');
      const error = await failure(download(join(folder, 'blob'), [fault]));
      expect(error).toMatchObject({ name: 'HubError', code, transient: false });
      expect(error.where).toMatch(/^http:\/\/[\w.]+:\d+\/(lfs|owner)\/[^?]*$/);
      expect(await readdir(folder)).toEqual(['blob']);
      expect(await readFile(join(folder, 'blob'), 'utf8')).toBe('what was there before');
      expect(ranges()).toEqual([undefined]);
    }),
  );

  // F15, F03: a cut or a silence, then the rest.
  test.each<[string, () => Fault[]]>([
    ['was cut', () => [cut(300), cut(300, 600)]],
    ['fell silent', () => Array(2).fill({ kind: 'stall', after: 300 })],
  ])('goes on where the transfer %s', (_name, faults) =>
    inFolder(async (folder) => {
      const [first, second] = faults() as [Fault, Fault];
      await download(join(folder, 'blob'), [first, { kind: 'reply', status: 503 }, second]);
      expect(await readFile(join(folder, 'blob'))).toEqual(BYTES);
      expect(ranges()).toEqual([undefined, 'bytes=300-', 'bytes=300-', 'bytes=600-']);
    }),
  );

  test('starts again where the server does not serve parts', () =>
    inFolder(async (folder) => {
      await download(join(folder, 'blob'), [
        { kind: 'cut', after: 300 },
        { kind: 'reply', status: 200, body: BYTES },
      ]);
      expect(await readFile(join(folder, 'blob'))).toEqual(BYTES);
    }));

  test('starts again where the server sends another part than asked', () =>
    inFolder(async (folder) => {
      const headers = { 'content-range': 'bytes 0-999/1000' };
      await download(join(folder, 'blob'), [cut(300), { kind: 'reply', status: 206, headers, body: BYTES }]);
      expect(await readFile(join(folder, 'blob'))).toEqual(BYTES);
    }));

  test('refuses parts that do not fit together', () =>
    inFolder(async (folder) => {
      const headers = { 'content-range': 'bytes 300-999/1000' };
      const part: Fault = { kind: 'reply', status: 206, headers, body: FLIPPED.subarray(300) };
      expect(await failure(download(join(folder, 'blob'), [cut(300), part]))).toMatchObject({
        code: 'HUB_CORRUPT',
      });
      expect(await readdir(folder)).toEqual([]);
    }));

  test('takes a transfer whose connection breaks after the last byte', () =>
    inFolder(async (folder) => {
      hub.repository('owner/model').commit({ 'model.safetensors': BYTES });
      const settings = hubSettings({}, { endpoint: hub.url });
      const plain = await hubFetch(undefined);
      const breaking: TransportOptions['fetch'] = async (url, init) => {
        const reply = await plain(url, init);
        if (!url.includes('/lfs/')) return reply;
        const reader = reply.body!.getReader();
        const read = async () => {
          const chunk = await reader.read();
          if (chunk.done) throw new TypeError('terminated');
          return chunk;
        };
        return {
          ...reply,
          status: 200,
          headers: reply.headers,
          body: { getReader: () => ({ read, cancel: reader.cancel.bind(reader) }), cancel: reader.cancel.bind(reader) },
        };
      };
      const one = new HubTransport(settings, { fetch: breaking, ...quickClock() });
      await downloadFile(one, one.url(SOURCE), join(folder, 'blob'), EXPECTED);
      expect(await readFile(join(folder, 'blob'))).toEqual(BYTES);
    }));

  test('goes on through any number of cuts while it gets on', () =>
    inFolder(async (folder) => {
      const bytes = Buffer.alloc(8 << 20, 'laya');
      const digests = [{ algorithm: 'sha256', hex: sha256(bytes) }] as const;
      const step = (1 << 20) + 5;
      const cuts = Array.from({ length: 6 }, (_, i) => cut(step, step * (i + 1)));
      await download(join(folder, 'blob'), cuts, bytes, { size: bytes.length, digests });
      expect(ranges()).toHaveLength(7);
    }));

  test('gives up after three retries without progress, and leaves nothing', () =>
    inFolder(async (folder) => {
      hub.failAlways(/GET \/lfs/, { kind: 'cut', after: 0 });
      expect(await failure(download(join(folder, 'blob'), []))).toMatchObject({ code: 'HUB_UNREACHABLE' });
      expect(ranges()).toHaveLength(4);
      expect(await readdir(folder)).toEqual([]);
    }));

  test('leaves nothing when the caller stops it', () =>
    inFolder(async (folder) => {
      hub.repository('owner/model').commit({ 'model.safetensors': BYTES });
      hub.failNext(/GET \/lfs/, { kind: 'stall', after: 300 });
      const controller = new AbortController();
      const one = await transport({ signal: controller.signal, inactivityMs: 60_000 });
      const reason = new Error('enough');
      const run = downloadFile(one, one.url(SOURCE), join(folder, 'blob'), EXPECTED, () => controller.abort(reason));
      expect(await failure(run)).toBe(reason);
      expect(await readdir(folder)).toEqual([]);
    }));

  // F23: each download has its own temporary file; what gets the name was hashed as a whole.
  test('keeps simultaneous downloads of one file apart', () =>
    inFolder(async (folder) => {
      hub.repository('owner/model').commit({ 'model.safetensors': BYTES });
      hub.failNext(/GET \/lfs/, { kind: 'cut', after: 300 }, { kind: 'stall', after: 700 });
      const one = await transport({ inactivityMs: 250 });
      const runs = Array.from({ length: 5 }, () => downloadFile(one, one.url(SOURCE), join(folder, 'blob'), EXPECTED));
      await Promise.all(runs);
      expect(await readdir(folder)).toEqual(['blob']);
      expect(await readFile(join(folder, 'blob'))).toEqual(BYTES);
    }));

  test('throws the system error for a folder that is not there', () =>
    inFolder(async (folder) => {
      expect(await failure(download(join(folder, 'none', 'blob'), []))).toMatchObject({ code: 'ENOENT' });
    }));
});
