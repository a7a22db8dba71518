import { describe, expect, it } from '@jest/globals';
import { hostileImports } from './hostile.js';
import { archiveOf, artifactEntries, type Entry, pax } from './tar.js';

const refusal = hostileImports();

describe('an archive with a name that leads elsewhere', () => {
  const names = [
    'model.mlmodelc/../x',
    'model.mlmodelc/../../../../x',
    'model.mlmodelc/./x',
    'model.mlmodelc//x',
    '../manifest.json',
    '/manifest.json',
    '/model.mlmodelc/x',
    './manifest.json',
    'model.mlmodelc\\x',
    'model.mlmodelc/..\\x',
    'C:model.mlmodelc/x',
    'model.mlmodelc/C:x',
    'model.mlmodelc/a b',
    'model.mlmodelc/-rf',
    'model.mlmodelc/.hidden',
    'model.mlmodelc/a\nb',
    'model.mlmodelc/a\u001b[2J',
    'model.mlmodelc/',
    '',
    '/',
    '.',
    '..',
  ];

  it.each(names)('is refused: %j', async (name) => {
    const entries = await artifactEntries();
    expect(await refusal(archiveOf([{ name, content: 'x' }, ...entries]))).toBe('ARCHIVE_NAME');
    expect(
      await refusal(archiveOf([pax({ path: name }), { name: 'model.mlmodelc/x', content: 'x' }, ...entries])),
    ).toBe('ARCHIVE_NAME');
  });

  const others: [string, Entry][] = [
    ['a file beside manifest and model', { name: 'README', content: 'x' }],
    ['a marker of ours', { name: 'PENDING.json', content: '{"pid":1}' }],
    ['another folder', { name: 'model.mlpackage/', type: '5' }],
    ['a longer name for the model', { name: 'model.mlmodelc2/x', content: 'x' }],
    ['a folder for the manifest', { name: 'manifest.json/', type: '5' }],
    ['a file for the model', { name: 'model.mlmodelc', content: 'x' }],
    ['bytes that are not UTF-8', { name: Uint8Array.of(0x6d, 0xff, 0xfe), content: 'x' }],
  ];

  it.each(others)('is refused: %s', async (_what, entry) => {
    expect(await refusal(archiveOf([entry, ...(await artifactEntries())]))).toBe('ARCHIVE_NAME');
  });
});
