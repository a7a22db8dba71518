import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { bundle, ended, startChild } from '../child.js';
import { workspace } from '../workspace.js';
import { ARCHIVE_OPERATIONS } from './archive-operations.js';
import { OPERATIONS } from './operations.js';

const folder = workspace();
const CALLS = bundle('registry/children/calls.ts');
const DISK = bundle('registry/children/disk.ts');

// R23: EIO is the disk's, EACCES the administrator's.
describe.each(Object.keys({ ...OPERATIONS, ...ARCHIVE_OPERATIONS }))('%s', (name) => {
  const codes = ['replace', 'quarantine', 'restore', 'prune', 'import', 'export'].includes(name)
    ? ['EIO', 'EACCES']
    : ['EIO'];

  it.each(codes)('is sound whichever call of the file system gives %s', async (code) => {
    const child = await ended(startChild(CALLS, [folder(), name, code]));
    expect(child.stderr).toBe('');
    const records = child.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(records).toEqual([{ calls: expect.any(Number) }]);
    expect(records[0].calls).toBeGreaterThan(2);
  });
});

/** Runs a script on a disk of one megabyte of its own, in a namespace where only it sees the mount. */
const MOUNT = 'mount -t tmpfs -o size=1m,nr_inodes=1000 none "$1" && shift && exec "$@"';
const NAMESPACES = [['-m'], ['-rm']];

/** How a small disk can be had here: as root, as any user; undefined where the system has no such thing. */
function namespace(): string[] | undefined {
  const works = (flags: string[]): boolean =>
    spawnSync('unshare', [...flags, 'sh', '-c', MOUNT, 'sh', folder(), 'true']).status === 0;
  return NAMESPACES.find(works);
}

// R23, B12
describe('a full disk', () => {
  const expected = {
    build: 'DISK_FULL',
    lock: 'DISK_FULL',
    load: 'unwritable',
    verify: 'right',
    served: 'old',
    pruned: ['artifacts/.staging/left removed'],
    after: 'registered',
    servedAfter: 'new',
    last: 'registered',
    servedLast: 'newer',
  };

  it('stops what needs space, says so, and harms nothing', async () => {
    const flags = namespace();
    const root = join(folder(), 'disk');
    mkdirSync(root);
    const node = [process.execPath, DISK, root];
    const args = flags && [...flags, 'sh', '-c', MOUNT, 'sh', root, ...node];
    const child = args ? spawn('unshare', args) : startChild(DISK, [root, 'fake']);
    const { stdout, stderr } = await ended(child);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toMatchObject(expected);
    expect(['done', 'DISK_FULL']).toContain(JSON.parse(stdout).quarantine);
  });

  it('does so when the calls fail one by one', async () => {
    const { stdout, stderr } = await ended(startChild(DISK, [folder(), 'fake']));
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toMatchObject(expected);
  });
});
