import { join } from 'node:path';
import { decodeText, parseRecord, readText } from '../schemas/door.js';
import { isSystemError, RecordError } from '../schemas/errors.js';
import type { Manifest } from '../schemas/generated/types.js';
import { manifest as validator } from '../schemas/generated/validators.js';
import { ArtifactIntegrityError, ArtifactRevisionError } from './errors.js';
import { checkEvidence } from './evidence.js';
import { GRAPH } from './models.js';
import { type ArtifactKey, COMPILED, MANIFEST } from './paths.js';
import { type HashMemo, hashTree, TREE_V1, type TreeDigest, type TreeFile } from './tree.js';

/** A registered artifact whose manifest was read and checked against what was asked for. */
export interface OpenedArtifact {
  readonly key: ArtifactKey;
  readonly folder: string;
  /** Absolute path of `model.mlmodelc`. */
  readonly model: string;
  readonly manifest: Manifest;
}

/** Files that every `.mlmodelc` of this graph has, non-empty. */
const REQUIRED_FILES = ['coremldata.bin', 'metadata.json', 'model.mil', 'weights/weight.bin'] as const;

/**
 * Reads an artifact's manifest and checks it against the key: schema, pins, graph, shape, evidence.
 * The bytes of the model are not looked at. Throws Artifact*Error.
 */
export async function readArtifact(key: ArtifactKey, folder: string): Promise<OpenedArtifact> {
  const path = join(folder, MANIFEST);
  const manifest = await readText(path).then(
    (text) => parseManifest(text, path),
    (error: unknown) => {
      throw unreadable(error, path);
    },
  );
  checkManifest(key, manifest, folder);
  return { key, folder, model: join(folder, COMPILED), manifest };
}

/** Checks a manifest against the key: pins, graph, shape, evidence. Throws Artifact*Error; `where` is for its text. */
export function checkManifest(key: ArtifactKey, manifest: Manifest, where: string): void {
  checkSource(key, manifest);
  checkEvidence(manifest, where);
}

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

/** A manifest from its bytes or text. Throws ArtifactIntegrityError MANIFEST_UNREADABLE or MANIFEST_INVALID. */
export function parseManifest(content: string | Uint8Array, where: string): Manifest {
  try {
    const text = typeof content === 'string' ? content : decodeText(content, where);
    return parseRecord<Manifest>(text, validator, where);
  } catch (error) {
    throw unreadable(error, where);
  }
}

function unreadable(error: unknown, where: string): unknown {
  const code = error instanceof RecordError && error.code === 'RECORD_INVALID' ? 'MANIFEST_INVALID' : undefined;
  if (!(error instanceof RecordError) && !isSystemError(error)) return error;
  return new ArtifactIntegrityError(code ?? 'MANIFEST_UNREADABLE', `the manifest can't be used: ${error.message}`, {
    where,
    found: error instanceof RecordError ? error.found : error.code,
    hint: 'build the artifact again with --force',
    cause: error,
  });
}

function checkSource({ model, bucket }: ArtifactKey, { source, artifact }: Manifest): void {
  const expect = (
    code: 'SOURCE_MISMATCH' | 'GRAPH_MISMATCH' | 'SHAPE_MISMATCH' | 'QUANTIZATION_MISMATCH',
    field: string,
    found: unknown,
    expected: unknown,
  ): void => {
    if (found === expected) return;
    throw new ArtifactRevisionError(code, `${field} is ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`, {
      where: field,
      expected,
      found,
      hint: `npm run build-artifacts -- --model ${model.name} --length ${bucket} --force`,
    });
  };
  expect('SOURCE_MISMATCH', 'source.model', source.model, model.name);
  expect('SOURCE_MISMATCH', 'source.repo', source.repo, model.repo);
  expect('SOURCE_MISMATCH', 'source.revision', source.revision, model.revision);
  expect('SOURCE_MISMATCH', 'source.weights_sha256', source.weights_sha256, model.weightsSha256);
  expect('GRAPH_MISMATCH', 'artifact.graph', artifact.graph, GRAPH.name);
  expect('GRAPH_MISMATCH', 'artifact.precision', artifact.precision, GRAPH.precision);
  expect('GRAPH_MISMATCH', 'artifact.max_options', artifact.max_options, GRAPH.maxOptions);
  expect('SHAPE_MISMATCH', 'artifact.length', artifact.length, bucket);
  expect('SHAPE_MISMATCH', 'artifact.batch', artifact.batch, GRAPH.batch);
  expect('QUANTIZATION_MISMATCH', 'artifact.quantization', artifact.quantization ?? null, null);
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
