import { describe, expect, it } from '@jest/globals';
import { hostileImports } from './hostile.js';
import { archiveOf, artifactEntries, blocksOf, type Entry, pax, recordOf } from './tar.js';

const refusal = hostileImports();
const file: Entry = { name: 'model.mlmodelc/x', content: 'x' };
const long = (content: string): Entry => ({ name: '././@LongLink', type: 'L', content });
const edited = (edit: (header: Buffer) => void): Entry => ({ ...file, edit });

// A05: what two readers could take in different ways is refused.
describe('an archive with headers that can be read in two ways', () => {
  const headers: [string, readonly Entry[]][] = [
    ['two sizes', [pax({ size: '700' }), file]],
    ['a size override before a long name', [pax({ size: '700' }), long('model.mlmodelc/y\0'), file]],
    ['two extended headers', [pax({ mtime: '1' }), pax({ path: 'model.mlmodelc/y' }), file]],
    ['a long name and an extended header', [long('model.mlmodelc/y\0'), pax({ path: 'model.mlmodelc/z' }), file]],
    ['one keyword twice', [pax(recordOf(['path', 'model.mlmodelc/y']) + recordOf(['path', 'manifest.json'])), file]],
    ['a link target', [pax({ linkpath: '/etc/passwd' }), file]],
    ['a sparse map', [pax({ 'GNU.sparse.major': '1' }), file]],
    ['a file type override', [pax({ 'SCHILY.filetype': 'hardlink' }), file]],
    ['a size that is no number', [pax({ size: '0x10' }), file]],
    ['a record without a length', [pax('path=model.mlmodelc/y\n'), file]],
    ['a record that is longer than the header', [pax('99 path=model.mlmodelc/y\n'), file]],
    ['a record that is shorter than its text', [pax('9 path=model.mlmodelc/y\n'), file]],
    ['a record without a keyword', [pax('5 =x\n'), file]],
    ['a record with a padded length', [pax('010 path=x\n'), file]],
    ['a long name without an end', [long('model.mlmodelc/y'), file]],
    ['a long name with two ends', [long('model.mlmodelc/y\0/z\0'), file]],
    ['a wrong checksum', [{ ...file, badChecksum: true }]],
    ['the old format without a magic', [edited((header) => header.fill(0, 257, 265))]],
    ['a size in base 256', [edited((header) => header.set([0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 124))]],
    ['a negative size', [edited((header) => header.write('-0000000001\0', 124))]],
    ['an empty size', [edited((header) => header.fill(0, 124, 136))]],
    ['text after a name', [edited((header) => header.write('\0../x', 40))]],
    ['a folder with content', [{ name: 'model.mlmodelc/d/', type: '5', content: 'x' }]],
    ['content after a member', [{ ...file, size: 0 }]],
  ];

  it.each(headers)('is refused: %s', async (_what, entries) => {
    expect(await refusal(archiveOf([...entries, ...(await artifactEntries())]))).toBe('ARCHIVE_HEADER');
  });

  it('is refused when an extended header has no member after it', async () => {
    expect(await refusal(archiveOf([...(await artifactEntries()), pax({ mtime: '1' })]))).toBe('ARCHIVE_HEADER');
  });

  it('is refused when padding holds something', async () => {
    const [manifest, ...rest] = await artifactEntries();
    const padded = blocksOf(manifest!);
    padded[padded.length - 1] = 1;
    const { gzipSync } = await import('node:zlib');
    const archive = gzipSync(Buffer.concat([padded, ...rest.map(blocksOf), Buffer.alloc(1024)]));
    expect(await refusal(archive)).toBe('ARCHIVE_HEADER');
  });

  it('is refused with a global extended header', async () => {
    const global = { ...pax({ path: 'manifest.json' }), type: 'g' };
    expect(await refusal(archiveOf([global, ...(await artifactEntries())]))).toBe('ARCHIVE_TYPE');
  });
});
