import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from '@jest/globals';

const IMPORT = /import \{([^}]+)\} from '(\.[^']+\.m?js)'/g;
const scripts = ['bench', 'scripts'].flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.mjs'))
    .map((name) => join(folder, name))
    .filter((script) => readFileSync(script, 'utf8').match(IMPORT)),
);

/** Names that a script takes from the built files and that are not there. */
async function missing(script: string): Promise<string[]> {
  const absent: string[] = [];
  for (const [, names, path] of readFileSync(script, 'utf8').matchAll(IMPORT)) {
    const module = (await import(pathToFileURL(resolve(script, '..', path!)).href)) as Record<string, unknown>;
    const wanted = names!.split(',').map((name) => name.trim().split(' as ')[0]!);
    absent.push(...wanted.filter((name) => name !== '' && !(name in module)).map((name) => `${name} of ${path}`));
  }
  return absent;
}

describe('benchmarks and scripts', () => {
  it('import something, most of them', () => {
    expect(scripts.length).toBeGreaterThan(12);
  });

  it.each(scripts)('%s takes only what the built files have', async (script) => {
    expect(await missing(script)).toEqual([]);
  });
});
