import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { packageRoot } from '../../registry/package-root.js';
import { type Environment, toolsRoot } from '../../registry/paths.js';

/** Where this release's laya-probe is, or would be, installed. */
export interface ProbeLocation {
  /** SHA-256 of the sources it is built from, hex. */
  readonly key: string;
  /** Its folder in the tools cache; it appears by one rename and is complete when it is there. */
  readonly folder: string;
  readonly executable: string;
}

/** Where the sources of laya-probe are. */
export const probeSources = (): string => join(packageRoot(), 'swift-probe');

/**
 * The place of laya-probe in the tools cache. It depends on the sources of this release: an executable that was built
 * from others has another place. Nothing is looked for there. Throws system errors when the sources can't be read.
 */
export async function locateProbe(env: Environment, sources = probeSources()): Promise<ProbeLocation> {
  const key = await probeKey(sources);
  const folder = join(toolsRoot(env), `laya-probe-${key.slice(0, 12)}`);
  return { key, folder, executable: join(folder, 'bin', 'laya-probe') };
}

/** SHA-256 over path, length and bytes of `Package.swift` and every Swift file below `Sources`, by path. */
async function probeKey(sources: string): Promise<string> {
  const hash = createHash('sha256').update('laya-probe sources v1\n');
  for (const path of await sourceFiles(sources)) {
    const bytes = await readFile(join(sources, path));
    hash.update(`${path}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest('hex');
}

/** POSIX paths in the order of their UTF-8 bytes. */
async function sourceFiles(sources: string): Promise<string[]> {
  const entries = await readdir(join(sources, 'Sources'), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.swift'));
  const paths = files.map(({ parentPath, name }) => relative(sources, join(parentPath, name)).split(sep).join('/'));
  return ['Package.swift', ...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}
