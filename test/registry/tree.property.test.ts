import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { comparePaths, hashTree } from '../../registry/tree.js';
import { workspace } from '../workspace.js';
import { pythonHashes } from './python-hashes.js';

const folder = workspace();

/** A name that any file system takes, with characters that orders disagree about. */
const name = fc
  .string({
    minLength: 1,
    maxLength: 12,
    unit: fc.constantFrom(
      'a',
      'b',
      '-',
      '.',
      '0',
      ' ',
      '_',
      '\u00e9',
      '\ue000',
      '\uff5e',
      '\uffff',
      '\u{10000}',
      '\u{1f600}',
    ),
  })
  .filter((text) => text !== '.' && text !== '..');
const path = fc.array(name, { minLength: 1, maxLength: 4 });
/** Paths with the size of the file there, or nothing for a folder. */
const tree = fc.uniqueArray(fc.tuple(path, fc.option(fc.uint8Array({ maxLength: 40 }))), {
  maxLength: 12,
  selector: ([parts]) => parts.join('/'),
});

/** Makes what can be made: a path below a file is left out. */
function make(root: string, entries: readonly (readonly [string[], Uint8Array | null])[]): void {
  for (const [parts, content] of entries) {
    const full = join(root, ...parts);
    try {
      mkdirSync(content ? dirname(full) : full, { recursive: true });
      if (content) writeFileSync(full, content, { flag: 'wx' });
    } catch (error) {
      if (!['EEXIST', 'ENOTDIR', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  }
}

it('gives the hashes that the implementation in Python gives', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(tree, { minLength: 8, maxLength: 16 }), async (trees) => {
      const root = folder();
      const roots = trees.map((_, i) => join(root, String(i)));
      for (const [i, entries] of trees.entries()) {
        mkdirSync(roots[i]!);
        make(roots[i]!, entries);
      }
      const ours = await Promise.all(roots.map((one) => hashTree(one)));
      expect(ours.map(({ v1, v2 }) => ({ v1, v2 }))).toEqual(pythonHashes(roots));
      rmSync(root, { recursive: true });
    }),
    { numRuns: 6 },
  );
});

it('orders paths in one way, whatever order they come in', () => {
  const text = path.map((parts) => parts.join('/'));
  fc.assert(
    fc.property(fc.array(text), (paths) => {
      const sorted = [...paths].sort(comparePaths);
      expect([...paths].reverse().sort(comparePaths)).toEqual(sorted);
      for (const [i, one] of sorted.entries())
        if (i > 0) expect(comparePaths(sorted[i - 1]!, one)).toBeLessThanOrEqual(0);
    }),
  );
});
