import { mkdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { writeArchive } from '../../registry/archive/write.js';
import { findModel } from '../../registry/models.js';
import { artifactFolder } from '../../registry/paths.js';
import { registerLayaTiny } from '../registered.js';
import { keptFolder, workspace } from '../workspace.js';
import { inOwnMounts } from './small-disk.js';

const folder = workspace();
const store = keptFolder();
const key = { model: findModel('laya-tiny'), bucket: 64 };
const cli = `${process.execPath} ${resolve('bin/laya-artifacts.js')}`;

beforeAll(() => registerLayaTiny(store(), [64]));

/** Runs a command on a full disk, then on one with room; what each said, and what the first left there. */
async function onFullDisk(command: string): Promise<{ codes: string[]; error: { code: string }; left: string[] }> {
  const [at, log] = [join(folder(), 'disk'), folder()];
  await mkdir(at);
  const script = [
    'mount -t tmpfs -o size=1m tmpfs "$1" || exit 99',
    `${command} --json >${log}/out 2>${log}/error; echo $? >>${log}/codes`,
    `find "$1" -mindepth 1 -type f >${log}/left`,
    'mount -o remount,size=100m "$1"',
    `${command} --json >${log}/out 2>${log}/error2; echo $? >>${log}/codes`,
    'umount "$1"',
  ].join('\n');
  expect(inOwnMounts(script, at)).toEqual({ status: 0, output: '' });
  const lines = async (name: string) =>
    (await readFile(join(log, name), 'utf8')).split('\n').filter((line) => line !== '');
  return { codes: await lines('codes'), error: JSON.parse((await lines('error'))[0]!), left: await lines('left') };
}

// R23
describe('a full disk', () => {
  it('stops an export, which leaves nothing and succeeds once there is room', async () => {
    const command = `LAYA_APPLE_CACHE=${store()} ${cli} export laya-tiny --out "$1"/a.tar.gz`;
    const { codes, error, left } = await onFullDisk(command);
    expect([codes, error.code, left]).toEqual([['1', '0'], 'ARCHIVE_UNWRITABLE', []]);
  });

  it('stops an import, which leaves nothing and succeeds once there is room', async () => {
    const file = join(folder(), 'a.tar.gz');
    await writeArchive(key, artifactFolder(store(), key), file, { threads: 0, signal: new AbortController().signal });
    const { codes, error, left } = await onFullDisk(`LAYA_APPLE_CACHE="$1" ${cli} import ${file}`);
    expect([codes, error.code, left]).toEqual([['1', '0'], 'DISK_FULL', []]);
  });
});
