import { lstat, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { parseRecord, readText } from '../schemas/door.js';
import { isSystemError, RecordError } from '../schemas/errors.js';
import type { Dense } from '../schemas/generated/types.js';
import { dense as validator } from '../schemas/generated/validators.js';
import { ArtifactIntegrityError, ArtifactMissingError, ArtifactParityError, ArtifactRevisionError } from './errors.js';
import type { ModelSpec } from './models.js';
import { parseName } from './names.js';
import { MANIFEST } from './paths.js';
import { digestEntries, listTree, TREE_V1, type TreeDigest } from './tree.js';

/** The any-length graph: its name, its inputs and outputs. */
export const DENSE = {
  name: 'dense-any',
  precision: 'float32',
  inputs: ['ids', 'lengths', 'types', 'markers'],
  outputs: ['logits', 'cls', 'pooled'],
} as const;

/** Names inside a registered any-length graph's folder. */
export const DENSE_FOLDER = 'model';
export const DENSE_MODEL = 'model.onnx';
export const DENSE_DATA = 'model.onnx.data';

/** Largest difference of a probability that the FP32 gate allows. */
const TOLERANCE = 1e-4;

/** A registered any-length graph whose manifest was read and checked. */
export interface OpenedDense {
  readonly model: ModelSpec;
  readonly folder: string;
  readonly manifest: Dense;
}

/**
 * Where a model's any-length graph is registered. Outside `artifacts/`: the Python runtime takes every manifest three
 * levels below that folder for one of its own artifacts.
 */
export const denseFolder = (root: string, { name, revision }: ModelSpec): string =>
  join(root, 'portable', name, revision.slice(0, 12), `${DENSE.name}-fp32`);

/** The command that registers it. */
const buildHint = ({ name }: ModelSpec): string => `npm run build-artifacts -- --model ${name} --graph any-length`;

/**
 * The folder that holds the graph now: the registered one, or the kept copy beside it while a replacement is between
 * its two renames (protocol §3.4); undefined when there is none.
 */
export async function locateDense(root: string, model: ModelSpec): Promise<string | undefined> {
  const folder = denseFolder(root, model);
  if (await holdsManifest(folder)) return folder;
  const kept = await keptDense(folder);
  return (await holdsManifest(folder)) ? folder : kept.at(-1);
}

/** Copies that a replacement moved aside and that still hold a manifest, oldest first. */
export async function keptDense(folder: string): Promise<string[]> {
  const siblings = await readdir(dirname(folder)).catch((error: unknown) => {
    if (isSystemError(error)) return [];
    throw error;
  });
  const kept: { path: string; since: number }[] = [];
  for (const sibling of siblings) {
    const { kind, base } = parseName(sibling);
    const path = join(dirname(folder), sibling);
    if (kind === 'old' && base === basename(folder) && (await holdsManifest(path)))
      kept.push({ path, since: (await stat(path)).ctimeMs });
  }
  return kept.sort((a, b) => a.since - b.since).map(({ path }) => path);
}

const holdsManifest = (folder: string): Promise<boolean> =>
  lstat(join(folder, MANIFEST)).then(
    (found) => found.isFile(),
    () => false,
  );

/** Same as `readDense` on the located folder, or ArtifactMissingError that names the command which builds it. */
export async function requireDense(root: string, model: ModelSpec): Promise<OpenedDense> {
  const folder = await locateDense(root, model);
  if (folder !== undefined) return readDense(model, folder);
  throw new ArtifactMissingError('ARTIFACT_MISSING', `no any-length graph of ${model.name} is registered`, {
    where: denseFolder(root, model),
    hint: buildHint(model),
  });
}

/** Reads the manifest in a folder and checks it: schema, pins, evidence. Throws Artifact*Error. */
export async function readDense(model: ModelSpec, folder: string): Promise<OpenedDense> {
  const path = join(folder, MANIFEST);
  const manifest = await readText(path)
    .then((text) => parseRecord<Dense>(text, validator, path))
    .catch((error: unknown) => {
      if (!(error instanceof RecordError) && !isSystemError(error)) throw error;
      const code = error instanceof RecordError && error.code === 'RECORD_INVALID' ? 'MANIFEST_INVALID' : undefined;
      throw new ArtifactIntegrityError(code ?? 'MANIFEST_UNREADABLE', `the manifest can't be used: ${error.message}`, {
        where: path,
        hint: `${buildHint(model)} --force`,
        cause: error,
      });
    });
  checkSource(model, manifest, path);
  checkEvidence(manifest, path);
  return { model, folder, manifest };
}

function checkSource(model: ModelSpec, { source }: Dense, path: string): void {
  const pins = { model: model.name, repo: model.repo, revision: model.revision, weights_sha256: model.weightsSha256 };
  for (const [field, expected] of Object.entries(pins)) {
    const found = source[field as keyof typeof pins];
    if (found === expected) continue;
    throw new ArtifactRevisionError('SOURCE_MISMATCH', `source.${field} is another one`, {
      where: path,
      expected,
      found,
      hint: `${buildHint(model)} --force`,
    });
  }
}

/** A verdict that its own figures contradict is refused, and so is evidence about other bytes. */
function checkEvidence({ parity, evidence, integrity, placement }: Dense, where: string): void {
  const refuse = (field: string, found: unknown, expected: unknown): never => {
    const details = { where: `${where}: ${field}`, expected, found };
    throw new ArtifactIntegrityError('EVIDENCE_INCONSISTENT', `${field} contradicts the verdict`, details);
  };
  if (!parity.passed) throw new ArtifactParityError('PARITY_MISSING', 'no passed parity gate is recorded', { where });
  for (const field of ['tolerance', 'prob_max_abs', 'action_prob_max_abs'] as const)
    if (!((parity[field] ?? Number.NaN) <= TOLERANCE)) refuse(`parity.${field}`, parity[field], TOLERANCE);
  for (const field of ['hard_mismatches', 'token_mismatch_cases'] as const)
    if (parity[field] !== 0) refuse(`parity.${field}`, parity[field], 0);
  for (const field of ['all_finite', 'repeat_identical'] as const)
    if (parity[field] !== true) refuse(`parity.${field}`, parity[field], true);
  if (evidence.artifact_sha256 !== integrity.artifact_sha256)
    refuse('evidence.artifact_sha256', evidence.artifact_sha256, integrity.artifact_sha256);
  if (placement.compute_units !== 'PORTABLE_CPU')
    refuse('placement.compute_units', placement.compute_units, 'PORTABLE_CPU');
}

/**
 * Compares every byte of the graph's files with the manifest. Throws ArtifactIntegrityError.
 *
 * @param digest What gives a file's SHA-256; it may remember those of files that did not change.
 */
export async function verifyDense(
  { folder, manifest, model }: OpenedDense,
  digest: (path: string) => Promise<string>,
): Promise<TreeDigest> {
  const tree = join(folder, DENSE_FOLDER);
  const entries = [];
  for (const { path, folder: isFolder } of await listTree(tree)) {
    if (isFolder) entries.push({ path, folder: true as const });
    else {
      const bytes = (await stat(join(tree, path))).size;
      entries.push({ path, folder: false, bytes, digest: Buffer.from(await digest(join(tree, path)), 'hex') });
    }
  }
  const found = digestEntries(entries);
  const { artifact_sha256: v1, tree_v2: v2, tree_hash: name } = manifest.integrity;
  if (name === TREE_V1 && found.v1 === v1 && found.v2 === v2) return found;
  throw new ArtifactIntegrityError('TREE_MISMATCH', 'the graph is not the one its manifest describes', {
    where: tree,
    expected: v1,
    found: found.v1,
    hint: `${buildHint(model)} --force`,
  });
}
