import { describe, expect, it } from '@jest/globals';
import { hostileImports } from './hostile.js';
import { archiveOf, artifactEntries, pax } from './tar.js';

const refusal = hostileImports();

// A01, R16: what a Mac's tar and Finder add is refused for what it is; it is not dropped, and never hashed.
describe('an archive with companions of a Mac', () => {
  const names = [
    '._manifest.json',
    'model.mlmodelc/._coremldata.bin',
    'model.mlmodelc/.DS_Store',
    '.DS_Store',
    '__MACOSX/manifest.json',
    'model.mlmodelc/.localized',
    'model.mlmodelc/Icon\r',
  ];

  it.each(names)('is refused because of %j', async (name) => {
    const entries = await artifactEntries();
    expect(await refusal(archiveOf([...entries, { name, content: 'x' }]))).toBe('ARCHIVE_COMPANION');
    expect(await refusal(archiveOf([{ name, content: 'x' }, ...entries]))).toBe('ARCHIVE_COMPANION');
  });

  it.each(['LIBARCHIVE.xattr.com.apple.quarantine', 'SCHILY.xattr.com.apple.provenance'])(
    'is refused because of the extended attribute %s',
    async (keyword) => {
      const entries = await artifactEntries();
      expect(await refusal(archiveOf([pax({ [keyword]: 'MDA4' }), ...entries]))).toBe('ARCHIVE_HEADER');
    },
  );

  it('is refused when its names start with ./', async () => {
    const entries = (await artifactEntries()).map((entry) => ({ ...entry, name: `./${entry.name}` }));
    expect(await refusal(archiveOf(entries))).toBe('ARCHIVE_NAME');
  });
});
