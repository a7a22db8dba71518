import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readArchive } from '../../../registry/archive/read.js';
import { hashTree } from '../../../registry/tree.js';
import { treeOf, workspace, writeTree } from '../../workspace.js';
import { FILES, writeArtifact } from '../artifact.js';
import { archiveOf, artifactEntries } from './tar.js';

const folder = workspace();
const signal = new AbortController().signal;

function run(file: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(file, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${file}: ${stderr}`);
}

/** As the Python runtime exports: members of files as they lie there, whatever their times and owners are. */
const PYTHON = `
import sys, tarfile
format = {'pax': tarfile.PAX_FORMAT, 'gnu': tarfile.GNU_FORMAT, 'ustar': tarfile.USTAR_FORMAT}[sys.argv[3]]
with tarfile.open(sys.argv[2], 'w:gz', format=format) as tar:
    tar.add(sys.argv[1] + '/manifest.json', arcname='manifest.json')
    tar.add(sys.argv[1] + '/model.mlmodelc', arcname='model.mlmodelc')
`;

const DEEP = `d1/${'n'.repeat(70)}/${'m'.repeat(50)}.bin`;

describe('readArchive', () => {
  it.each(['pax', 'gnu', 'ustar'])("reads what Python's tarfile writes in the %s format", async (format) => {
    const [artifact, out] = [folder(), folder()];
    const { integrity } = await writeArtifact(artifact, format === 'ustar' ? FILES : { ...FILES, [DEEP]: 'deep' });
    const file = join(out, 'python.tar.gz');
    run('python3', ['-I', '-c', PYTHON, artifact, file, format]);
    await writeTree(out, { 'unpacked/.keep': '' });
    const read = await readArchive(file, { signal, into: join(out, 'unpacked') });
    expect(read.tree.v1).toBe(integrity.artifact_sha256);
    expect((await hashTree(join(out, 'unpacked/model.mlmodelc'))).v2).toBe(integrity.tree_v2);
  });

  it('reads what tar writes', async () => {
    const [artifact, out] = [folder(), folder()];
    const { integrity } = await writeArtifact(artifact);
    const file = join(out, 'tar.tar.gz');
    run('tar', ['-czf', file, '-C', artifact, 'manifest.json', 'model.mlmodelc']);
    expect((await readArchive(file, { signal })).tree.v2).toBe(integrity.tree_v2);
  });

  it('reads members in any order, and writes nothing unless told where', async () => {
    const { writeFile } = await import('node:fs/promises');
    const out = folder();
    const file = join(out, 'reversed.tar.gz');
    await writeFile(file, archiveOf((await artifactEntries()).reverse()));
    const read = await readArchive(file, { signal });
    expect(read.members.at(-1)?.path).toBe('manifest.json');
    expect(read.bytes).toBe((await readFile(file)).length);
    expect(await treeOf(out)).toEqual(['reversed.tar.gz']);
  });
});
