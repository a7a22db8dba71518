import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { hostileImports } from './hostile.js';
import { archiveOf, artifactEntries, blocksOf, END, type Entry, pax } from './tar.js';

const refusal = hostileImports();
const many = (count: number, entry: (i: number) => Entry): Entry[] => Array.from({ length: count }, (_, i) => entry(i));
const file = (name: string, more: Partial<Entry>): Entry => ({ name: `model.mlmodelc/${name}`, ...more });
const MiB = 1 << 20;

// A08: caps while streaming; what they stop leaves no files.
describe('an archive that is a bomb', () => {
  it('is refused: 300 MB of zeros in 300 kB', async () => {
    const zeros = gzipSync(Buffer.alloc(MiB), { level: 9 });
    const header = blocksOf({ name: 'model.mlmodelc/weights/weight.bin', size: 300 * MiB });
    const archive = Buffer.concat([gzipSync(header), ...Array<Buffer>(300).fill(zeros), gzipSync(END)]);
    expect(archive.length).toBeLessThan(350_000);
    expect(await refusal(archive)).toBe('ARCHIVE_LIMIT');
  });

  it('is refused: zeros after the end mark without end', async () => {
    const zeros = gzipSync(Buffer.alloc(MiB), { level: 9 });
    expect(await refusal(Buffer.concat([archiveOf(await artifactEntries()), ...Array<Buffer>(64).fill(zeros)]))).toBe(
      'ARCHIVE_LIMIT',
    );
  });

  const bombs: [string, readonly Entry[]][] = [
    ['more members than any model has', many(1200, (i) => ({ name: `model.mlmodelc/f${i}` }))],
    ['folders in folders', many(20, (i) => ({ name: `model.mlmodelc/${'d/'.repeat(i)}x`, type: '5' }))],
    ['a header that claims 10 GB', [{ name: 'model.mlmodelc/x', size: 10 * 2 ** 30 }]],
    ['files that together exceed the cap', [file('x', { content: 'x' }), file('y', { size: 4 * 2 ** 30 })]],
    ['a manifest of 2 MB', [{ name: 'manifest.json', content: Buffer.alloc(2 * MiB, ' ') }]],
    ['an extended header of 1 GiB', [{ name: 'x', type: 'x', size: 2 ** 30 }]],
    ['a long name of 1 GiB', [{ name: 'x', type: 'L', size: 2 ** 30 }]],
    ['an empty extended header', [pax('')]],
    ['a path of 300 characters', [pax({ path: `model.mlmodelc/${'a/'.repeat(3)}${'b'.repeat(290)}` }), { name: 'x' }]],
    ['a name of 120 characters', [pax({ path: `model.mlmodelc/${'b'.repeat(120)}` }), { name: 'x' }]],
  ];

  it.each(bombs)('is refused: %s', async (_what, entries) => {
    expect(await refusal(archiveOf(entries))).toBe('ARCHIVE_LIMIT');
  });
});
