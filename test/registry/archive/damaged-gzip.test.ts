import { constants, gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { hostileImports } from './hostile.js';
import { artifactEntries, tarOf } from './tar.js';

const refusal = hostileImports();

describe('an archive whose gzip data is damaged', () => {
  /** Without Huffman codes a changed byte of content is only found by CRC or hash. */
  const stored = async () => gzipSync(tarOf(await artifactEntries()), { level: constants.Z_NO_COMPRESSION });

  const damages: [string, (archive: Buffer) => void][] = [
    ['the CRC', (archive) => archive.writeUInt32LE(1, archive.length - 8)],
    ['the length', (archive) => archive.writeUInt32LE(1, archive.length - 4)],
    ['the method', (archive) => archive.writeUInt8(7, 2)],
    ['reserved flags', (archive) => archive.writeUInt8(0xe0, 3)],
    ['a block', (archive) => archive.writeUInt8(7, 10)],
  ];

  it.each(damages)('is refused: %s', async (_what, damage) => {
    const archive = await stored();
    damage(archive);
    expect(await refusal(archive)).toBe('ARCHIVE_CORRUPT');
  });

  it('is refused when one byte of the weights is another', async () => {
    const archive = await stored();
    archive.write('Weights', archive.lastIndexOf('weights'));
    expect(await refusal(archive)).toBe('ARCHIVE_CORRUPT');
  });

  it('is refused when the file is not the one that was asked for', async () => {
    expect(await refusal(await stored(), { sha256: 'a'.repeat(64) })).toBe('ARCHIVE_DIGEST');
  });
});
