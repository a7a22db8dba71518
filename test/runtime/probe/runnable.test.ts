import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { checkRunnable, formatOf } from '../../../runtime/probe/runnable.js';
import { codeOf, workspace } from '../../workspace.js';

const folder = workspace();

function bytesOf(fill: (bytes: Buffer) => void): Buffer {
  const bytes = Buffer.alloc(64);
  fill(bytes);
  return bytes;
}

const machO = (processor: number) =>
  bytesOf((bytes) => {
    bytes.writeUInt32BE(0xcffaedfe, 0);
    bytes.writeUInt32LE(processor, 4);
  });
const elf = (machine: number) =>
  bytesOf((bytes) => {
    bytes.writeUInt32BE(0x7f454c46, 0);
    bytes.writeUInt16LE(machine, 18);
  });
const universal = (parts: number, ...processors: number[]) =>
  bytesOf((bytes) => {
    bytes.writeUInt32BE(0xcafebabe, 0);
    bytes.writeUInt32BE(parts, 4);
    for (const [i, processor] of processors.entries()) bytes.writeUInt32BE(processor, 8 + 20 * i);
  });

const ARM = 0x0100000c;
const INTEL = 0x01000007;

function program(bytes: Buffer | string, mode = 0o755): string {
  const file = join(folder(), 'laya-probe');
  writeFileSync(file, bytes);
  chmodSync(file, mode);
  return file;
}

describe('the first bytes of a program', () => {
  test('tell its kind and processors', () => {
    expect(formatOf(Buffer.from('#!/bin/sh\n'))).toEqual({ kind: 'script', processors: [] });
    expect(formatOf(machO(ARM))).toEqual({ kind: 'Mach-O', processors: ['arm64'] });
    expect(formatOf(universal(2, INTEL, ARM))).toEqual({ kind: 'Mach-O', processors: ['x64', 'arm64'] });
    expect(formatOf(elf(62))).toEqual({ kind: 'ELF', processors: ['x64'] });
    expect(formatOf(elf(8))).toEqual({ kind: 'ELF', processors: ['processor 8'] });
    expect(formatOf(Buffer.from('text'))).toEqual({ kind: 'unknown', processors: [] });
    expect(formatOf(Buffer.alloc(0))).toEqual({ kind: 'unknown', processors: [] });
    expect(formatOf(universal(0xffffffff, ARM)).processors[0]).toBe('arm64');
  });
});

// F28: what starting would report as a signal or nothing at all is told apart before.
describe('a program that can not be started here', () => {
  test('is not there', async () => {
    const parent = folder();
    mkdirSync(join(parent, 'folder'));
    for (const name of ['nothing', 'folder', 'folder/laya-probe']) {
      expect(await codeOf(() => checkRunnable(join(parent, name)))).toBe('PROBE_MISSING');
    }
    expect(await codeOf(() => checkRunnable(join(program('#!/bin/sh\n'), 'below')))).toBe('PROBE_MISSING');
  });

  test('has no run bit, and the hint names it', async () => {
    const file = program('#!/bin/sh\n', 0o644);
    await expect(checkRunnable(file)).rejects.toMatchObject({ code: 'PROBE_NOT_EXECUTABLE', hint: `chmod +x ${file}` });
  });

  test.each([
    ['darwin', 'arm64', machO(INTEL), 'Mach-O for x64'],
    ['darwin', 'arm64', elf(183), 'ELF for arm64'],
    ['darwin', 'x64', universal(1, ARM), 'Mach-O for arm64'],
    ['linux', 'x64', elf(183), 'ELF for arm64'],
    ['linux', 'x64', machO(ARM), 'Mach-O for arm64'],
    ['linux', 'x64', Buffer.from('not a program'), 'unknown'],
    ['linux', 'x64', Buffer.alloc(0), 'unknown'],
  ] as const)('is for another machine: %s %s', async (platform, arch, bytes, found) => {
    await expect(checkRunnable(program(bytes), platform, arch)).rejects.toMatchObject({
      code: 'PROBE_WRONG_FORMAT',
      found,
    });
  });

  test('is fine otherwise', async () => {
    await checkRunnable(program(machO(ARM)), 'darwin', 'arm64');
    await checkRunnable(program(universal(2, INTEL, ARM)), 'darwin', 'arm64');
    await checkRunnable(program(elf(62)), 'linux', 'x64');
    await checkRunnable(process.execPath);
  });
});
