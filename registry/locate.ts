import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isSystemError } from '../schemas/errors.js';
import { ArtifactMissingError } from './errors.js';
import { parseName } from './names.js';
import { type ArtifactKey, artifactFolder, COMPILED, MANIFEST } from './paths.js';

/** Looks that must find nothing before nothing is registered: a copy may come and go between two calls of one look. */
const LOOKS = 8;

/**
 * The folder that holds the artifact now (protocol §3.4): the registered path or, in the instant in
 * which a replacement is between its two renames, the kept previous copy beside it.
 * Returns undefined when nothing is registered.
 */
export async function locateArtifact(root: string, key: ArtifactKey): Promise<string | undefined> {
  const folder = artifactFolder(root, key);
  for (let look = 0; look < LOOKS; look++) {
    if (await isThere(folder)) return folder;
    const previous = await keptCopies(folder);
    if (await isThere(folder)) return folder;
    if (previous.length > 0) return previous.at(-1);
  }
  return undefined;
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
  const name = basename(folder);
  const siblings = await readdir(dirname(folder)).catch((error: unknown) => {
    if (isSystemError(error)) return [];
    throw error;
  });
  const kept: { path: string; since: number }[] = [];
  for (const sibling of siblings.filter((one) => isKept(one, name))) {
    const path = join(dirname(folder), sibling);
    const since = await keptSince(path);
    if (since !== undefined) kept.push({ path, since });
  }
  return kept.sort((a, b) => a.since - b.since).map(({ path }) => path);
}

function isKept(sibling: string, name: string): boolean {
  const { kind, base } = parseName(sibling);
  return kind === 'old' && base === name;
}

/** When a copy was moved aside; undefined when it can't be read, is no artifact any more, or is just being removed. */
async function keptSince(copy: string): Promise<number | undefined> {
  try {
    return (await hasBoth(copy)) ? (await stat(copy)).ctimeMs : undefined;
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

/** True for an artifact, and for a path that can't be looked into: reading it tells why. */
async function isThere(folder: string): Promise<boolean> {
  try {
    return await hasBoth(folder);
  } catch (error) {
    if (isSystemError(error)) return !isSystemError(error, 'ENOENT', 'ENOTDIR');
    throw error;
  }
}

const hasBoth = async (folder: string): Promise<boolean> =>
  (await stat(join(folder, MANIFEST))).isFile() && (await stat(join(folder, COMPILED))).isDirectory();
