import { mkdir, readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readArchive } from '../../registry/archive/read.js';
import { writeArchive } from '../../registry/archive/write.js';
import { recordText, writeFileDurably } from '../../registry/durable.js';
import { installArtifact } from '../../registry/install.js';
import { artifactFolder, MANIFEST } from '../../registry/paths.js';
import { openStaging } from '../../registry/staging.js';
import { FILES, KEY, writeArtifact } from './artifact.js';
import type { Operation } from './operations.js';

const signal = new AbortController().signal;
const now = (): Date => new Date('2026-01-02T03:04:05Z');
const ARCHIVE = (root: string): string => join(root, 'out', 'new.tar.gz');
const put = (folder: string, build: string) => writeArtifact(folder, { ...FILES, 'model.mil': build });

/** Writes an archive of a build beside a store that serves `old`, or nothing. */
async function prepareImport(root: string, isServing: boolean): Promise<void> {
  const source = join(root, 'source');
  await put(source, 'new');
  await mkdir(dirname(ARCHIVE(root)));
  await writeArchive(KEY, source, ARCHIVE(root), { threads: 0, signal });
  if (isServing) await put(artifactFolder(root, KEY), 'old');
}

/** Unpacks into a staging folder of its own and installs; the gates pass. */
export async function importInto(root: string, archive: string, replace: boolean): Promise<void> {
  const staging = await openStaging(root, 'import', new Date());
  const staged = join(staging.path, 'buckets/L64');
  await mkdir(staged, { recursive: true });
  const { manifest } = await readArchive(archive, { signal, into: staged });
  await writeFileDurably(join(staged, MANIFEST), recordText(manifest));
  await installArtifact(root, KEY, staged, async () => recordText(manifest), { replace, now });
  await staging.remove();
}

/** What stands at the archive's path must be whole, and nothing half-written may have its name. */
async function exportFrom(root: string): Promise<void> {
  const target = ARCHIVE(root);
  try {
    await writeArchive(KEY, artifactFolder(root, KEY), target, { threads: 0, signal });
  } finally {
    if ((await readdir(dirname(target))).includes(basename(target))) await readArchive(target, { signal });
  }
}

/** A sums file names the archive beside it, or is not there. */
export async function sumsFit(root: string): Promise<boolean> {
  const text = await readFile(`${ARCHIVE(root)}.sha256`, 'utf8').catch(() => undefined);
  return text === undefined || text.startsWith((await readArchive(ARCHIVE(root), { signal })).sha256);
}

/** Operations between archives and the store. */
export const ARCHIVE_OPERATIONS: Readonly<Record<string, Operation>> = {
  import: {
    prepare: (root) => prepareImport(root, false),
    run: (root) => importInto(root, ARCHIVE(root), false),
    serves: [undefined, 'new'],
    gives: 'new',
    keeps: false,
  },
  'import by force': {
    prepare: (root) => prepareImport(root, true),
    run: (root) => importInto(root, ARCHIVE(root), true),
    serves: ['old', 'new'],
    gives: 'new',
    keeps: true,
  },
  export: {
    prepare: async (root) => [await put(artifactFolder(root, KEY), 'old'), await mkdir(dirname(ARCHIVE(root)))],
    run: exportFrom,
    serves: ['old'],
    gives: 'old',
    keeps: true,
  },
};
