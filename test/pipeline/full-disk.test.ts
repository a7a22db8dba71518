import { execFileSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { workspace } from '../workspace.js';
import { inOwnMounts } from './small-disk.js';

const folder = workspace();

// R23, B12
describe('a full disk', () => {
  it.each([1, 5])('of %i MB stops a build, which succeeds once there is room', async (size) => {
    const at = join(folder(), 'disk');
    await mkdir(at);
    const log = folder();
    const script = join(log, 'run.sh');
    const command = `LAYA_APPLE_CACHE="$1" ${process.execPath} ${resolve('bin/laya-artifacts.js')} build laya-tiny --length 64 --json`;
    await writeFile(
      script,
      [
        `mount -t tmpfs -o size=${size}m tmpfs "$1" || exit 99`,
        `${command} >${log}/first.json 2>${log}/first.err; echo $? >${log}/first.code`,
        `find "$1" -mindepth 1 >${log}/left`,
        'mount -o remount,size=100m "$1"',
        `${command} >${log}/second.json 2>${log}/second.err; echo $? >${log}/second.code`,
        'umount "$1"',
      ].join('\n'),
    );
    const run = inOwnMounts(`. ${script}`, at);
    expect(run).toEqual({ status: 0, output: '' });
    const text = (name: string): string => execFileSync('cat', [join(log, name)], { encoding: 'utf8' }).trim();
    expect([text('first.code'), text('first.json')]).toEqual(['1', '']);
    expect(JSON.parse(text('first.err')).code).toBe('DISK_FULL');
    expect(
      text('left')
        .split('\n')
        .filter((path) => /laya-tiny\/|rejected\/|staging\/./.test(path)),
    ).toEqual([]);
    expect([text('second.code'), text('second.err')]).toEqual(['0', '']);
    expect(JSON.parse(text('second.json')).rows[0].outcome).toBe('registered');
    expect(await readdir(at)).toEqual([]);
  });
});
