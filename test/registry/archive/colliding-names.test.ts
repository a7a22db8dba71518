import { describe, expect, it } from '@jest/globals';
import { hostileImports } from './hostile.js';
import { archiveOf, artifactEntries } from './tar.js';

const refusal = hostileImports();
const model = (path: string) => ({ name: `model.mlmodelc/${path}`, content: 'x' });

// A07, R18: refused on every system, though a case-sensitive one would take them.
describe('an archive with names that a Mac takes for one', () => {
  it.each(['Model.mil', 'WEIGHTS/weight2.bin', 'weights/Weight.bin', 'model.MIL'])(
    'is refused: %s differs in case only',
    async (path) => {
      expect(await refusal(archiveOf([...(await artifactEntries()), model(path)]))).toBe('ARCHIVE_DUPLICATE');
    },
  );

  it('is refused when the manifest or the model is spelled otherwise', async () => {
    const entries = await artifactEntries();
    for (const name of ['Manifest.json', 'MANIFEST.JSON', 'Model.mlmodelc/x'])
      expect(await refusal(archiveOf([...entries, { name, content: 'x' }]))).toBe('ARCHIVE_NAME');
  });

  it.each(['stra\u00dfe', 'caf\u00e9', 'cafe\u0301', '\ufb01le', '\u212aelvin', '\u{1f600}'])(
    'is refused: %j is not of the safe alphabet',
    async (path) => {
      expect(await refusal(archiveOf([...(await artifactEntries()), model(path)]))).toBe('ARCHIVE_NAME');
    },
  );
});
