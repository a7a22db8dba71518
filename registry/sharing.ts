import { randomBytes } from 'node:crypto';
import { constants, readdirSync, statSync } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readTextSync } from '../schemas/door.js';
import { isSystemError, LayaError } from '../schemas/errors.js';
import { parseName } from './names.js';
import { type ArtifactKey, artifactFolder, COMPILED, MANIFEST } from './paths.js';
import { parseManifest } from './read.js';
import { sha256Handle } from './sha256.js';
import { type StoreSteps, storeSteps } from './steps.js';
import type { TreeDigest, TreeFile } from './tree.js';

/** Smaller files are not worth a link. */
const LEAST_BYTES = 64 << 10;
/** The file system can't link here: another device, no links at all, too many of them, or not for this user. */
export const CANNOT_LINK = ['EXDEV', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EPERM', 'EACCES'];

/** A file of a registered artifact, as its manifest lists it. */
interface Candidate {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Replaces files of a staged model by hard links to equal files of registered artifacts of the same model and revision
 * (protocol §10). A candidate is found by its digest and hashed before it is used; where no link can be made the copy
 * stays. Returns the paths that share their bytes now, below `model`.
 *
 * @param digest What `hashTree` found in `model`
 */
export async function shareFiles(
  root: string,
  key: ArtifactKey,
  model: string,
  digest: TreeDigest,
  changed: Partial<StoreSteps> = {},
): Promise<string[]> {
  const steps = storeSteps(changed);
  const large = digest.files.filter(({ bytes }) => bytes >= LEAST_BYTES);
  const candidates = large.length === 0 ? [] : findCandidates(root, key);
  const shared: string[] = [];
  for (const file of large)
    for (const candidate of candidates.filter((one) => one.sha256 === file.sha256 && one.bytes === file.bytes))
      if (await linkOver(join(model, file.path), file, candidate, steps)) {
        shared.push(file.path);
        break;
      }
  return shared;
}

/** Files that manifests of the model's other buckets list; what is to be replaced goes. What can't be read has none. */
function findCandidates(root: string, key: ArtifactKey): Candidate[] {
  const own = artifactFolder(root, key);
  const parent = dirname(own);
  return namesIn(parent)
    .filter((name) => parseName(name).kind === 'plain' && name !== basename(own))
    .flatMap((name) => {
      const folder = join(parent, name);
      return listedFiles(folder).map((file) => ({ ...file, path: join(folder, COMPILED, file.path) }));
    });
}

function listedFiles(folder: string): readonly Candidate[] {
  const path = join(folder, MANIFEST);
  try {
    const files = parseManifest(readTextSync(path), path).integrity.files ?? [];
    return files.filter((file) => !file.path.split('/').includes('..'));
  } catch (error) {
    if (error instanceof LayaError || isSystemError(error)) return [];
    throw error;
  }
}

async function linkOver(path: string, file: TreeFile, candidate: Candidate, steps: StoreSteps): Promise<boolean> {
  const temporary = `${path}.share-${process.pid}-${randomBytes(4).toString('hex')}`;
  const own = await lstat(path, { bigint: true });
  const inode = await inodeOfEqual(candidate, file, own.dev);
  if (inode === undefined) return false;
  if (inode === own.ino) return true;
  try {
    await steps.link(candidate.path, temporary);
    // The name may have been given to another file since its bytes were hashed.
    const isSame = (await lstat(temporary, { bigint: true })).ino === inode;
    if (isSame) await steps.rename(temporary, path);
    else await steps.unlink(temporary);
    return isSame;
  } catch (error) {
    await steps.unlink(temporary).catch(() => undefined);
    if (isSystemError(error, 'ENOENT', ...CANNOT_LINK)) return false;
    throw error;
  }
}

/** Inode of a candidate whose bytes were hashed and are the file's; undefined for any other. */
async function inodeOfEqual(candidate: Candidate, file: TreeFile, device: bigint): Promise<bigint | undefined> {
  try {
    if (!(await lstat(candidate.path)).isFile()) return undefined;
    const handle = await open(candidate.path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
    try {
      const { dev, ino, size } = await handle.stat({ bigint: true });
      if (dev !== device || Number(size) !== file.bytes) return undefined;
      return (await sha256Handle(handle)).digest.toString('hex') === file.sha256 ? ino : undefined;
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

function namesIn(folder: string): string[] {
  try {
    return statSync(folder).isDirectory() ? readdirSync(folder).sort() : [];
  } catch (error) {
    if (isSystemError(error)) return [];
    throw error;
  }
}
