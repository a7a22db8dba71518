import { describe, expect, it } from '@jest/globals';
import { hostileImports } from './hostile.js';
import { archiveOf, artifactEntries, type Entry } from './tar.js';

const refusal = hostileImports();

// A06: nothing but regular files and folders; a link is refused before anything is written through it.
describe('an archive with a link or a device', () => {
  const links: [string, Entry][] = [
    ['a symbolic link for the model', { name: 'model.mlmodelc', type: '2', link: '/tmp' }],
    ['a symbolic link inside the model', { name: 'model.mlmodelc/weights', type: '2', link: '../../..' }],
    ['a harmless symbolic link', { name: 'model.mlmodelc/copy.mil', type: '2', link: 'model.mil' }],
    ['a symbolic link for the manifest', { name: 'manifest.json', type: '2', link: 'model.mlmodelc/m' }],
    ['a hard link outside', { name: 'model.mlmodelc/h', type: '1', link: '/etc/hostname' }],
    ['a hard link upwards', { name: 'model.mlmodelc/h', type: '1', link: '../x' }],
    ['a hard link to a drive', { name: 'model.mlmodelc/h', type: '1', link: 'C:../../x' }],
    ['a hard link to a member', { name: 'model.mlmodelc/h', type: '1', link: 'manifest.json' }],
    ['a character device', { name: 'model.mlmodelc/null', type: '3' }],
    ['a block device', { name: 'model.mlmodelc/disk', type: '4' }],
    ['a fifo', { name: 'model.mlmodelc/pipe', type: '6' }],
    ['a contiguous file', { name: 'model.mlmodelc/old', type: '7' }],
    ['a GNU sparse file', { name: 'model.mlmodelc/sparse', type: 'S' }],
    ['a long link target', { name: '././@LongLink', type: 'K', content: '/etc/passwd\0' }],
    ['an unknown type', { name: 'model.mlmodelc/odd', type: 'Z' }],
  ];

  it.each(links)('is refused: %s', async (_what, entry) => {
    const entries = await artifactEntries();
    expect(await refusal(archiveOf([entry, ...entries]))).toBe('ARCHIVE_TYPE');
    expect(await refusal(archiveOf([...entries, entry]))).toBe('ARCHIVE_TYPE');
  });
});
