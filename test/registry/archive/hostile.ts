import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { importArchive } from '../../../pipeline/import.js';
import type { ImportOrder } from '../../../pipeline/stages/unpack.js';
import { readArchive } from '../../../registry/archive/read.js';
import { artifactFolder } from '../../../registry/paths.js';
import { testContext, testOrder } from '../../pipeline/context.js';
import { codeOf, treeOf, workspace } from '../../workspace.js';
import { KEY, writeArtifact } from '../artifact.js';

/** Imports archives into a store that has an artifact already; each refusal must leave the store as it was. */
export function hostileImports(): (archive: Uint8Array, order?: Partial<ImportOrder>) => Promise<string> {
  const folder = workspace();
  return async (archive, order = {}) => {
    const [root, outside] = [folder(), folder()];
    const file = join(outside, 'hostile.tar.gz');
    await writeFile(file, archive);
    await writeArtifact(artifactFolder(root, KEY));
    const before = await treeOf(root);
    const { toolchain } = testOrder();
    const code = await codeOf(() => importArchive({ file, force: true, toolchain, ...order }, testContext(root)));
    expect(await treeOf(root)).toEqual([...before, 'artifacts/.staging/'].sort());
    expect(await treeOf(outside)).toEqual(['hostile.tar.gz']);
    await rm(root, { recursive: true });
    return code;
  };
}

/** The code with which an archive is refused when nothing of it is to be written. */
export function inspections(): (archive: Uint8Array) => Promise<string> {
  const folder = workspace();
  return async (archive) => {
    const file = join(folder(), 'archive.tar.gz');
    await writeFile(file, archive);
    return codeOf(() => readArchive(file, { signal: new AbortController().signal }));
  };
}
