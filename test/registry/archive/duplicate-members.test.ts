import { describe, expect, it } from '@jest/globals';
import { hostileImports } from './hostile.js';
import { archiveOf, artifactEntries, type Entry } from './tar.js';

const refusal = hostileImports();

// A05: with two members for one path, one could be checked and the other used.
describe('an archive with two members for one path', () => {
  const seconds: [string, Entry][] = [
    ['a second manifest', { name: 'manifest.json', content: '{}' }],
    ['a second weight file', { name: 'model.mlmodelc/weights/weight.bin', content: 'weights' }],
    ['a folder where a file is', { name: 'model.mlmodelc/model.mil', type: '5' }],
    ['a file where a folder is', { name: 'model.mlmodelc/weights', content: 'x' }],
    ['a file below a file', { name: 'model.mlmodelc/model.mil/x', content: 'x' }],
  ];

  it.each(seconds)('is refused: %s', async (_what, second) => {
    const entries = await artifactEntries();
    expect(await refusal(archiveOf([...entries, second]))).toBe('ARCHIVE_DUPLICATE');
    expect(await refusal(archiveOf([entries[0]!, second, ...entries.slice(1)]))).toBe('ARCHIVE_DUPLICATE');
  });

  it('is refused when a folder is listed twice', async () => {
    const folder = { name: 'model.mlmodelc/weights/', type: '5' };
    expect(await refusal(archiveOf([folder, ...(await artifactEntries()), folder]))).toBe('ARCHIVE_DUPLICATE');
  });
});
