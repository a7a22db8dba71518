import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { hostileImports, inspections } from './hostile.js';
import { archiveOf, artifactEntries, blocksOf, END, tarOf } from './tar.js';

const refusal = hostileImports();
const inspection = inspections();

// A03: every cut fails, also the one exactly between two members.
describe('an archive that was cut', () => {
  it('is refused wherever the tar ends', async () => {
    const tar = tarOf(await artifactEntries());
    for (let bytes = 0; bytes < tar.length; bytes += 256) {
      const code = await inspection(gzipSync(tar.subarray(0, bytes)));
      expect([bytes, code]).toEqual([bytes, 'ARCHIVE_TRUNCATED']);
    }
    expect(await inspection(gzipSync(tar))).toBe('no error');
  });

  it('is refused when a member is missing but the end mark is there', async () => {
    const entries = await artifactEntries();
    expect(await refusal(archiveOf(entries.slice(0, -1)))).toBe('TREE_MISMATCH');
    expect(await refusal(archiveOf(entries.slice(1)))).toBe('ARCHIVE_INCOMPLETE');
    expect(await refusal(archiveOf(entries.slice(0, 1)))).toBe('ARCHIVE_INCOMPLETE');
    expect(await refusal(archiveOf([]))).toBe('ARCHIVE_INCOMPLETE');
  });

  it('is refused with one block of end mark instead of two', async () => {
    expect(await refusal(archiveOf(await artifactEntries(), END.subarray(512)))).toBe('ARCHIVE_TRUNCATED');
  });

  it('is refused wherever the gzip data ends', async () => {
    const archive = archiveOf(await artifactEntries());
    for (const bytes of [1, 5, 10, 11, 300, archive.length - 9, archive.length - 8, archive.length - 1])
      expect([bytes, await inspection(archive.subarray(0, bytes))]).toEqual([bytes, 'ARCHIVE_TRUNCATED']);
    expect(await refusal(archive.subarray(0, archive.length - 8))).toBe('ARCHIVE_TRUNCATED');
  });

  it('is refused when it is no archive at all', async () => {
    expect(await refusal(new Uint8Array(0))).toBe('ARCHIVE_TRUNCATED');
    expect(await refusal(Buffer.from('a text file\n'))).toBe('ARCHIVE_CORRUPT');
    expect(await refusal(Buffer.from('<!doctype html><title>Sign in</title>'))).toBe('ARCHIVE_CORRUPT');
    expect(await refusal(tarOf(await artifactEntries()))).toBe('ARCHIVE_CORRUPT');
    expect(await refusal(gzipSync(Buffer.alloc(10240, 'text')))).toBe('ARCHIVE_HEADER');
    expect(await refusal(gzipSync(blocksOf({ name: 'notes.txt', content: 'x' })))).toBe('ARCHIVE_NAME');
  });
});
