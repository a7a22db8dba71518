import type { Manifest } from '../schemas/generated/types.js';
import { ArtifactIntegrityError } from './errors.js';
import type { OpenedArtifact } from './manifest.js';
import { type HashMemo, hashTree, TREE_V1, type TreeDigest, type TreeFile } from './tree.js';

export { checkManifest, type OpenedArtifact, parseManifest, readArtifact } from './manifest.js';

/** Files that every `.mlmodelc` of this graph has, non-empty. */
const REQUIRED_FILES = ['coremldata.bin', 'metadata.json', 'model.mil', 'weights/weight.bin'] as const;

/**
 * Hashes the model's tree and compares it with the manifest. Throws ArtifactIntegrityError TREE_MISMATCH.
 *
 * @param memo Files that were hashed already, by the same command.
 */
export async function verifyTree({ model, manifest }: OpenedArtifact, memo?: HashMemo): Promise<TreeDigest> {
  const digest = await hashTree(model, memo);
  checkTree(manifest, digest, model);
  return digest;
}

/** Compares a tree's hashes with those in the manifest: `model` is for the error's text. Throws like `verifyTree`. */
export function checkTree(manifest: Manifest, digest: TreeDigest, model: string): void {
  const { artifact_sha256: v1, tree_hash: name, tree_v2: v2 } = manifest.integrity;
  if (name !== undefined && name !== TREE_V1) throw mismatch(model, TREE_V1, name);
  const differences = differingFiles(manifest.integrity.files, digest.files);
  if (digest.v1 !== v1) throw mismatch(model, v1, digest.v1, differences);
  if (v2 !== undefined && digest.v2 !== v2) throw mismatch(model, v2, digest.v2, differences);
  if (differences.length > 0) throw mismatch(model, 'the files of integrity.files', 'others', differences);
  requireFiles(model, digest);
}

/** How a tree's files differ from those that its manifest lists; others share bytes by that list. */
function differingFiles(listed: readonly TreeFile[] | undefined, found: readonly TreeFile[]): string[] {
  if (listed === undefined) return [];
  const text = ({ bytes, sha256 }: TreeFile): string => `${bytes} ${sha256}`;
  const before = new Map(listed.map((file) => [file.path, text(file)]));
  const after = new Map(found.map((file) => [file.path, text(file)]));
  return [
    ...found.filter(({ path }) => !before.has(path)).map(({ path }) => `${path} was added`),
    ...listed.filter(({ path }) => !after.has(path)).map(({ path }) => `${path} is missing`),
    ...found
      .filter((file) => before.has(file.path) && before.get(file.path) !== text(file))
      .map(({ path }) => `${path} differs`),
  ];
}

/** Throws ArtifactIntegrityError TREE_INCOMPLETE unless the files that every model needs are there and not empty. */
export function requireFiles(model: string, digest: TreeDigest): void {
  for (const path of REQUIRED_FILES) {
    if ((digest.files.find((file) => file.path === path)?.bytes ?? 0) > 0) continue;
    throw new ArtifactIntegrityError('TREE_INCOMPLETE', `${path} is missing or empty`, {
      where: model,
      expected: REQUIRED_FILES,
    });
  }
}

/** Says what is wrong where the manifest lists its files: a stray `.DS_Store` is named, and so is a changed weight. */
function mismatch(where: string, expected: string, found: string, differences: readonly string[] = []): Error {
  const detail = differences.length === 0 ? '' : `: ${differences.slice(0, 5).join(', ')}`;
  return new ArtifactIntegrityError('TREE_MISMATCH', `the model is not the one its manifest describes${detail}`, {
    where,
    expected,
    found,
    hint: 'build the artifact again with --force',
  });
}
