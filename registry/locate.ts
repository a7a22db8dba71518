import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isSystemError } from '../schemas/errors.js';
import { ArtifactMissingError } from './errors.js';
import { type ArtifactKey, artifactFolder, COMPILED, MANIFEST } from './paths.js';

/**
 * The folder that holds the artifact now (protocol §3.4): the registered path or, in the instant in
 * which a replacement is between its two renames, the kept previous copy beside it.
 * Returns undefined when nothing is registered.
 */
export async function locateArtifact(root: string, key: ArtifactKey): Promise<string | undefined> {
  const folder = artifactFolder(root, key);
  if (await isWhole(folder)) return folder;
  const previous = await keptCopies(folder);
  if (await isWhole(folder)) return folder;
  return previous.at(-1);
}

/** Same, or ArtifactMissingError (ARTIFACT_MISSING) that names the command which builds it. */
export async function requireArtifact(root: string, key: ArtifactKey): Promise<string> {
  const folder = await locateArtifact(root, key);
  if (folder !== undefined) return folder;
  throw new ArtifactMissingError('ARTIFACT_MISSING', `no artifact of ${key.model.name} L${key.bucket} is registered`, {
    where: artifactFolder(root, key),
    hint: `npm run build-artifacts -- --model ${key.model.name} --length ${key.bucket}`,
  });
}

/** Copies `.old-<pid>` beside a registered path that still hold a manifest, oldest first. */
export async function keptCopies(folder: string): Promise<string[]> {
  const prefix = `${basename(folder)}.old-`;
  const siblings = await readdir(dirname(folder)).catch((error: unknown) => {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  });
  const kept: { path: string; since: number }[] = [];
  for (const name of siblings.filter((one) => one.startsWith(prefix))) {
    const path = join(dirname(folder), name);
    if (await isWhole(path)) kept.push({ path, since: (await stat(path)).ctimeMs });
  }
  return kept.sort((a, b) => a.since - b.since).map(({ path }) => path);
}

async function isWhole(folder: string): Promise<boolean> {
  try {
    return (await stat(join(folder, MANIFEST))).isFile() && (await stat(join(folder, COMPILED))).isDirectory();
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}
