import { ArtifactRevisionError } from '../registry/errors.js';
import type { ModelSpec } from '../registry/models.js';
import { contentRevision } from './checkpoint.js';
import { CheckpointError } from './errors.js';

/**
 * Compares a checkpoint's file digests with the pins. Throws CheckpointError CHECKPOINT_WEIGHTS for other weights and,
 * for a checkpoint that ships with the project, for any other file.
 */
export function checkPins(model: ModelSpec, files: Readonly<Record<string, string>>, where: string): void {
  const refuse = (what: string, expected: string, found: string | undefined): never => {
    throw new CheckpointError('CHECKPOINT_WEIGHTS', `${what} is not the pinned one of ${model.name}`, {
      where,
      expected,
      found,
      hint: `use the checkpoint ${model.repo} at ${model.revision}`,
    });
  };
  const weights = files['model.safetensors'];
  if (weights !== model.weightsSha256) refuse('the sha256 of model.safetensors', model.weightsSha256, weights);
  if (!model.bundled) return;
  const revision = contentRevision(files);
  if (revision !== model.revision) refuse('the digest of the checkpoint files', model.revision, revision);
}

/** Anything registered whose manifest names the checkpoint files it was proven with. */
interface Proven {
  readonly manifest: { readonly checkpoint?: { readonly files: Readonly<Record<string, string>> } };
}

/**
 * The host's part of the model (tokenizer, embeddings, action head, configuration) must be the one that the artifact
 * was proven with. Throws ArtifactRevisionError SOURCE_MISMATCH.
 */
export function checkProvenWith<A extends Proven>(artifact: A, files: Readonly<Record<string, string>>): void {
  for (const [path, expected] of Object.entries(artifact.manifest.checkpoint?.files ?? {})) {
    if (files[path] === expected) continue;
    throw new ArtifactRevisionError('SOURCE_MISMATCH', `${path} is not the file the artifact was proven with`, {
      where: path,
      expected,
      found: files[path] ?? 'missing',
      hint: 'use the checkpoint that the artifact was built from, or build again',
    });
  }
}
