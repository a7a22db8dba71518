import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { hostileImports, inspections } from './hostile.js';
import { archiveOf, artifactEntries, blocksOf, END, tarOf } from './tar.js';

const refusal = hostileImports();
const inspection = inspections();
const more = blocksOf({ name: 'model.mlmodelc/x', content: 'x' });

describe('an archive with something after its end', () => {
  it('is refused: members after the end mark', async () => {
    const entries = await artifactEntries();
    expect(await refusal(archiveOf(entries, Buffer.concat([END, more, END])))).toBe('ARCHIVE_TRAILING');
    expect(await refusal(archiveOf(entries, Buffer.concat([END.subarray(512), more, END])))).toBe('ARCHIVE_TRAILING');
  });

  it('is refused: a second gzip member with a second archive', async () => {
    const archive = archiveOf(await artifactEntries());
    expect(await refusal(Buffer.concat([archive, archive]))).toBe('ARCHIVE_TRAILING');
  });

  it('is refused: bytes after the gzip data', async () => {
    const archive = archiveOf(await artifactEntries());
    expect(await refusal(Buffer.concat([archive, Buffer.from('trailing')]))).toBe('ARCHIVE_CORRUPT');
    expect(await refusal(Buffer.concat([archive, Buffer.alloc(700), Buffer.from('x')]))).toBe('ARCHIVE_TRAILING');
    const far = Buffer.concat([archive, Buffer.alloc(1 << 20), Buffer.from('x')]);
    expect(await refusal(far)).toBe('ARCHIVE_TRAILING');
  });

  it('is taken with zeros there, as tar and tapes pad', async () => {
    const entries = await artifactEntries();
    expect(await inspection(archiveOf(entries, Buffer.alloc(10240)))).toBe('no error');
    expect(await inspection(Buffer.concat([archiveOf(entries), Buffer.alloc(3000)]))).toBe('no error');
  });

  it('is taken in several gzip members, wherever they part', async () => {
    const tar = tarOf(await artifactEntries());
    for (const at of [0, 1, 512, 700, tar.length - 1, tar.length])
      expect(await inspection(Buffer.concat([gzipSync(tar.subarray(0, at)), gzipSync(tar.subarray(at))]))).toBe(
        'no error',
      );
  });
});
