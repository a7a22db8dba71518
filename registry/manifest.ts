import { join } from 'node:path';
import { decodeText, parseRecord, readText } from '../schemas/door.js';
import { isSystemError, RecordError } from '../schemas/errors.js';
import type { Manifest } from '../schemas/generated/types.js';
import { manifest as validator } from '../schemas/generated/validators.js';
import { ArtifactIntegrityError, ArtifactRevisionError } from './errors.js';
import { checkEvidence } from './evidence.js';
import { GRAPH } from './models.js';
import { type ArtifactKey, COMPILED, MANIFEST } from './paths.js';

/** A registered artifact whose manifest was read and checked against what was asked for. */
export interface OpenedArtifact {
  readonly key: ArtifactKey;
  readonly folder: string;
  /** Absolute path of `model.mlmodelc`. */
  readonly model: string;
  readonly manifest: Manifest;
}

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
