import { spawnSync } from 'node:child_process';
import { mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readText, readTextSync } from '../../schemas/door.js';
import { codeOf, workspace } from '../workspace.js';

const folder = workspace();

describe.each([
  ['readText', readText],
  ['readTextSync', async (path: string) => readTextSync(path)],
])('%s', (_name, read) => {
  it.each(['', '{}', 'a \ufffd b', '\ufeff{}', '\u{1f600}'])('gives the text %j as it is', async (text) => {
    const path = join(folder(), 'file');
    await writeFile(path, text);
    expect(await read(path)).toBe(text);
  });

  it.each([
    ['bytes that are not UTF-8', (path: string) => writeFile(path, Uint8Array.of(0x7b, 0xff, 0x7d)), 'JSON_SYNTAX'],
    ['half a character', (path: string) => writeFile(path, Uint8Array.of(0xf0, 0x9f, 0x98)), 'JSON_SYNTAX'],
    ['a lone surrogate', (path: string) => writeFile(path, Uint8Array.of(0xed, 0xa0, 0x80)), 'JSON_SYNTAX'],
    ['too many bytes', (path: string) => writeFile(path, '').then(() => truncate(path, (64 << 20) + 1)), 'JSON_LIMIT'],
    ['a folder', (path: string) => mkdir(path), 'JSON_SYNTAX'],
    // Opening it would wait for ever.
    ['a named pipe', async (path: string) => spawnSync('mkfifo', [path]), 'JSON_SYNTAX'],
  ])('refuses %s', async (_what, make, code) => {
    const path = join(folder(), 'file');
    await make(path);
    expect(await codeOf(() => read(path))).toBe(code);
  });

  it('passes the system error on', async () => {
    await expect(read(join(folder(), 'gone'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
