import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { workspace } from '../../workspace.js';
import { writeArtifact } from '../artifact.js';

const folder = workspace();
const MiB = 1 << 20;
const SIZE = 200;

/**
 * Peak memory in MiB. Linux counts the memory of the process that started this one into `maxRSS` (getrusage(2) is not
 * reset by execve), so a large test worker would be measured in place of the command; `VmHWM` begins anew.
 */
const PEAK =
  process.platform === 'linux'
    ? `Number(/VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]) >> 10`
    : 'process.resourceUsage().maxRSS >> 10';

/** Each runs in a process of its own, on the built files: threads and memory are those of a user's command. */
const run = async (root: string, step: string) => {
  const script = `
    import { mkdirSync, readFileSync } from 'node:fs';
    const from = (path) => import(${JSON.stringify(pathToFileURL('dist/registry/').href)} + path);
    const root = ${JSON.stringify(root)};
    const signal = new AbortController().signal;
    ${step}
    const peak = ${PEAK};
    process.stdout.write(JSON.stringify({ ...result, peak }));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
  return JSON.parse(stdout);
};
const writing = (threads: number): string => `
    const { writeArchive } = await from('archive/write.js');
    const { findModel } = await from('models.js');
    const key = { model: findModel('laya-tiny'), bucket: 64 };
    const target = root + '/${threads}.tar.gz';
    const { sha256 } = await writeArchive(key, root + '/artifact', target, { threads: ${threads}, signal });
    const result = { sha256 };`;
const READING = `
    const { readArchive } = await from('archive/read.js');
    mkdirSync(root + '/unpacked');
    const { sha256, tree } = await readArchive(root + '/2.tar.gz', { signal, into: root + '/unpacked' });
    const result = { sha256, v1: tree.v1, bytes: tree.bytes };`;

// S20: the memory is that of a few pieces, whatever the size; and the bytes do not depend on the threads (A11).
describe('an archive of a large artifact', () => {
  it('is written and read in little memory, the same with any number of threads', async () => {
    const root = folder();
    await mkdir(join(root, 'artifact/model.mlmodelc/weights'), { recursive: true });
    const file = await open(join(root, 'artifact/model.mlmodelc/weights/rows.bin'), 'wx');
    for (let i = 0, block = randomBytes(MiB); i < SIZE; i++) await file.write(block);
    await file.close();
    const { integrity } = await writeArtifact(join(root, 'artifact'));
    const written = [await run(root, writing(0)), await run(root, writing(1)), await run(root, writing(2))];
    const read = await run(root, READING);
    expect(written.map(({ sha256 }) => sha256)).toEqual([read.sha256, read.sha256, read.sha256]);
    expect(read.v1).toBe(integrity.artifact_sha256);
    expect(read.bytes).toBeGreaterThan(SIZE * MiB);
    for (const { peak } of [...written, read]) expect(peak).toBeLessThan(150);
  });
});
