import { mkdtempSync, rmSync } from 'node:fs';
import { cp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import { locateProbe, probeSources } from '../../../runtime/probe/locate.js';

const parent = mkdtempSync(join(tmpdir(), 'laya-locate-'));
const sources = join(parent, 'swift-probe');
const env = { LAYA_ARTIFACTS_TOOLS: join(parent, 'tools') };
const keyNow = async (): Promise<string> => (await locateProbe(env, sources)).key;

beforeEach(async () => {
  await rm(sources, { recursive: true, force: true });
  await cp(probeSources(), sources, { recursive: true });
});
afterAll(() => rmSync(parent, { recursive: true, force: true }));

describe('the place of laya-probe', () => {
  test('lies in the tools cache and is named after the sources', async () => {
    const { key, folder, executable } = await locateProbe(env);
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    expect(folder).toBe(join(parent, 'tools', `laya-probe-${key.slice(0, 12)}`));
    expect(executable).toBe(join(folder, 'bin', 'laya-probe'));
    expect(await keyNow()).toBe(key);
  });

  test('changes with a source file, its name, and the package', async () => {
    const before = await keyNow();
    const main = join(sources, 'Sources', 'laya-probe', 'main.swift');
    await writeFile(main, '// another program\n');
    const changed = await keyNow();
    await rename(main, join(sources, 'Sources', 'laya-probe', 'other.swift'));
    const renamed = await keyNow();
    await writeFile(join(sources, 'Package.swift'), '// swift-tools-version: 6.0\n');
    expect(new Set([before, changed, renamed, await keyNow()]).size).toBe(4);
  });

  test('does not change with tests, documents and builds', async () => {
    const before = await keyNow();
    await writeFile(join(sources, 'README.md'), 'other words');
    await rm(join(sources, 'Tests'), { recursive: true });
    await writeFile(join(sources, '.build'), '');
    await writeFile(join(sources, 'Sources', '.DS_Store'), '');
    expect(await keyNow()).toBe(before);
  });

  test('is not told without sources', async () => {
    await rm(sources, { recursive: true });
    await expect(locateProbe(env, sources)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
