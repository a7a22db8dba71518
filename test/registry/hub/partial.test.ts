import { randomBytes } from 'node:crypto';
import { readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { type ByteSink, downloadFile } from '../../../registry/hub/download.js';
import { hubFetch } from '../../../registry/hub/fetch.js';
import { hubSettings } from '../../../registry/hub/settings.js';
import { HubTransport, type TransportOptions } from '../../../registry/hub/transport.js';
import { sha256 } from '../../hub/repos.js';
import { TestHub } from '../../hub/server.js';
import { failure, inFolder, quickClock } from './fixture.js';

const MIB = 1 << 20;
const BYTES = randomBytes(4 * MIB);
const EXPECTED = { size: BYTES.length, digests: [{ algorithm: 'sha256', hex: sha256(BYTES) }] } as const;
/** No process has this number. */
const DEAD = 2 ** 31 - 2;

let hub: TestHub;
beforeAll(async () => {
  hub = await TestHub.start();
});
afterAll(() => hub.close());
afterEach(() => hub.reset());

async function download(target: string, options: Partial<TransportOptions> = {}, sink?: () => Promise<ByteSink>) {
  hub.repository('owner/model').commit({ 'model.safetensors': BYTES });
  const settings = hubSettings({}, { endpoint: hub.url });
  const one = new HubTransport(settings, { fetch: await hubFetch(undefined), ...quickClock(), retries: 0, ...options });
  const url = one.url(['owner', 'model', 'resolve', 'main', 'model.safetensors']);
  await downloadFile(one, url, target, EXPECTED, () => {}, sink);
}

const ranges = () => hub.arrivals.filter(({ at }) => at === 'content').map(({ headers }) => headers.range);
const partials = async (folder: string) => (await readdir(folder)).filter((name) => name.endsWith('.incomplete'));

/** Sinks that keep what they get; the last one's bytes must be the file's. */
function keeping() {
  const sinks: Buffer[][] = [];
  const open = async (): Promise<ByteSink> => {
    const pieces: Buffer[] = [];
    sinks.push(pieces);
    return { push: async (piece) => void pieces.push(piece), close: async () => undefined };
  };
  return { open, last: () => Buffer.concat(sinks.at(-1)!), count: () => sinks.length };
}

describe('a later download of the same content', () => {
  test('goes on where an earlier one gave up, and hands on every byte', () =>
    inFolder(async (folder) => {
      const target = join(folder, 'blob');
      hub.failNext(/GET \/lfs/, { kind: 'stall', after: 2 * MIB });
      expect(await failure(download(target, { inactivityMs: 300 }))).toMatchObject({ code: 'HUB_TIMEOUT' });
      const [left] = await partials(folder);
      const { size } = await stat(join(folder, left!));
      expect(size).toBeGreaterThan(MIB);
      const sinks = keeping();
      await download(target, {}, sinks.open);
      expect(ranges()).toEqual([undefined, `bytes=${size}-`]);
      expect(BYTES.equals(await readFile(target))).toBe(true);
      expect(BYTES.equals(sinks.last())).toBe(true);
      expect(await partials(folder)).toEqual([]);
    }));

  test('goes on after the caller stopped one', () =>
    inFolder(async (folder) => {
      const controller = new AbortController();
      hub.failNext(/GET \/lfs/, { kind: 'stall', after: 2 * MIB });
      let got = 0;
      const stop = async (): Promise<ByteSink> => ({
        push: async (piece) => {
          got += piece.length;
          if (got > 3 * (MIB / 2)) controller.abort(new Error('enough'));
        },
        close: async () => undefined,
      });
      await failure(download(join(folder, 'blob'), { signal: controller.signal }, stop));
      await download(join(folder, 'blob'));
      expect(ranges()[1]).toMatch(/^bytes=\d{7}-$/);
      expect(BYTES.equals(await readFile(join(folder, 'blob')))).toBe(true);
    }));

  test('goes on from what a killed process left, and leaves that until it is surely dead', () =>
    inFolder(async (folder) => {
      const left = `blob.${DEAD}-00000000.incomplete`;
      await writeFile(join(folder, left), BYTES.subarray(0, 2 * MIB));
      await download(join(folder, 'blob'));
      expect(ranges()).toEqual([`bytes=${2 * MIB}-`]);
      expect(BYTES.equals(await readFile(join(folder, 'blob')))).toBe(true);
      expect(await partials(folder)).toEqual([left]);
      await utimes(join(folder, left), 1, 1);
      await download(join(folder, 'blob'));
      expect(await partials(folder)).toEqual([]);
    }));

  // F23: what a running process writes is left alone.
  test('begins anew beside a running one', () =>
    inFolder(async (folder) => {
      const left = `blob.${process.ppid}-00000000.incomplete`;
      await writeFile(join(folder, left), BYTES.subarray(0, 2 * MIB));
      await download(join(folder, 'blob'));
      expect(ranges()).toEqual([undefined]);
      expect(await partials(folder)).toEqual([left]);
    }));

  // F21: rubbish under the right name.
  test.each([
    ['other bytes', () => Buffer.alloc(2 * MIB, 'x')],
    ['the right length and other bytes', () => Buffer.alloc(4 * MIB, 'x')],
    ['more bytes than there should be', () => Buffer.alloc(5 * MIB, 'x')],
  ])('begins anew, once, when what is left is wrong: %s', (_name, bytes) =>
    inFolder(async (folder) => {
      await writeFile(join(folder, 'blob.0-00000000.incomplete'), bytes());
      const sinks = keeping();
      await download(join(folder, 'blob'), {}, sinks.open);
      expect(BYTES.equals(await readFile(join(folder, 'blob')))).toBe(true);
      expect(BYTES.equals(sinks.last())).toBe(true);
      expect(await partials(folder)).toEqual([]);
    }),
  );

  test('needs no request when all is there', () =>
    inFolder(async (folder) => {
      await writeFile(join(folder, 'blob.0-00000000.incomplete'), BYTES);
      await download(join(folder, 'blob'));
      expect(ranges()).toEqual([]);
      expect(BYTES.equals(await readFile(join(folder, 'blob')))).toBe(true);
    }));

  test('tells what the one who took the bytes had against them, and keeps the right file', () =>
    inFolder(async (folder) => {
      const refusing = async (): Promise<ByteSink> => ({
        push: () => Promise.reject(new RangeError('not for me')),
        close: async () => undefined,
      });
      expect(await failure(download(join(folder, 'blob'), {}, refusing))).toMatchObject({ message: 'not for me' });
      expect(BYTES.equals(await readFile(join(folder, 'blob')))).toBe(true);
    }));
});
