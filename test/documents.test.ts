import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { REPORTED_CODES } from '../runtime/probe/errors.js';

const CODE = /`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)`/g;
/** Codes as they stand in the first argument of an error class's constructor, or in its union of codes. */
const IN_SOURCE = /'([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)'|^ {2}([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*): \d{3},$/gm;

const text = (path: string): string => readFileSync(path, 'utf8');

function sources(): string[] {
  return ['schemas', 'registry', 'runtime', 'pipeline'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => join(folder, path)),
  );
}

const isErrors = (path: string): boolean => /(^|\/)errors\.ts$/.test(path);

/** What `REPORTED_CODES` lists is the probe's own. */
function codesInSource(): string[] {
  const classes = sources()
    .filter(isErrors)
    .map((path) => text(path).replace(/REPORTED_CODES = \[[^\]]*\]/, ''))
    .flatMap((one) => [...one.matchAll(IN_SOURCE)].map(([, quoted, status]) => quoted ?? status!));
  const plain = sources().flatMap((path) =>
    [...text(path).matchAll(/new LayaError\(\s*'([A-Z_]+)'/g)].map(([, code]) => code!),
  );
  const codes = [...classes, ...plain];
  return [...new Set(codes)].filter((code) => !/^SIG(INT|TERM)$/.test(code)).sort();
}

describe('docs/errors.md', () => {
  const listed = [...text('docs/errors.md').matchAll(CODE)].map(([, code]) => code!);

  it('lists every code once, and none that no error has', () => {
    const converter = ['CONVERTER_CRASHED', 'CONVERTER_PROTOCOL'];
    const named = listed.filter((code) => !['HF_TOKEN'].includes(code) && !converter.includes(code));
    expect(named.sort()).toEqual(codesInSource());
  });

  it("leaves the probe's own codes to the protocol's document", () => {
    const protocol = text('docs/probe-protocol.md');
    expect(REPORTED_CODES.filter((code) => !protocol.includes(code))).toEqual([]);
  });
});

describe('README.md', () => {
  it('names only codes that docs/errors.md explains', () => {
    const section = text('README.md').split('## Errors')[1]!.split('\n## ')[0]!;
    const named = [...section.matchAll(CODE)].map(([, code]) => code!);
    expect(named.length).toBeGreaterThan(8);
    const listed = text('docs/errors.md');
    expect(named.filter((code) => !listed.includes(`\`${code}\``))).toEqual([]);
  });

  it('links to files that are there', () => {
    for (const name of ['README.md', 'CONTRIBUTING.md', ...readdirSync('docs').map((one) => `docs/${one}`)]) {
      const folder = name.startsWith('docs/') ? 'docs' : '.';
      const links = [...text(name).matchAll(/\]\((?!https?:)([^)#]+)[^)]*\)/g)].map(([, link]) => link!);
      for (const link of links) expect([name, link, readable(join(folder, link))]).toEqual([name, link, true]);
    }
  });
});

function readable(path: string): boolean {
  try {
    readdirSync(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOTDIR';
  }
}
