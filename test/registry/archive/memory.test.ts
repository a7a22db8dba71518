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

/** Runs in a process of its own, on the built files: threads and memory are those of a user's command. */
const script = (root: string): string => `
  import { mkdirSync } from 'node:fs';
  const from = (path) => import(${JSON.stringify(pathToFileURL('dist/registry/').href)} + path);
  const { writeArchive } = await from('archive/write.js');
  const { readArchive } = await from('archive/read.js');
  const { findModel } = await from('models.js');
  const root = ${JSON.stringify(root)};
  const [key, signal] = [{ model: findModel('laya-tiny'), bucket: 64 }, new AbortController().signal];
  const sums = [];
  for (const threads of [0, 1, 2]) {
    const { sha256 } = await writeArchive(key, root + '/artifact', root + '/' + threads + '.tar.gz', { threads, signal });
    sums.push(sha256);
  }
  mkdirSync(root + '/unpacked');
  const { sha256, tree } = await readArchive(root + '/2.tar.gz', { signal, into: root + '/unpacked' });
  const peak = Math.round(process.resourceUsage().maxRSS / 1024);
  process.stdout.write(JSON.stringify({ sums, sha256, v1: tree.v1, bytes: tree.bytes, peak }));
`;

// S20: the memory is that of a few pieces, whatever the size; and the bytes do not depend on the threads (A11).
describe('an archive of a large artifact', () => {
  it('is written and read in little memory, the same with any number of threads', async () => {
    const root = folder();
    await mkdir(join(root, 'artifact/model.mlmodelc/weights'), { recursive: true });
    const file = await open(join(root, 'artifact/model.mlmodelc/weights/rows.bin'), 'wx');
    for (let i = 0, block = randomBytes(MiB); i < SIZE; i++) await file.write(block);
    await file.close();
    const { integrity } = await writeArtifact(join(root, 'artifact'));
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script(root)]);
    const { sums, sha256, v1, bytes, peak } = JSON.parse(stdout);
    expect(sums).toEqual([sha256, sha256, sha256]);
    expect(v1).toBe(integrity.artifact_sha256);
    expect(bytes).toBeGreaterThan(SIZE * MiB);
    expect(peak).toBeLessThan(150);
  });
});
