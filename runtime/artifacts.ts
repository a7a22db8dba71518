import { ArtifactMissingError, ComputeUnitMismatchError } from '../registry/errors.js';
import { readWhole } from '../registry/generation.js';
import { requireArtifact } from '../registry/locate.js';
import type { ModelSpec } from '../registry/models.js';
import type { ArtifactKey } from '../registry/paths.js';
import type { OpenedArtifact } from '../registry/read.js';
import { UnsupportedShapeError } from './errors.js';

/** The registered artifacts of one model that portable evidence lets device `cpu` use, by bucket. */
export type ArtifactSet = ReadonlyMap<number, OpenedArtifact>;

/**
 * Reads the manifests of a model's registered artifacts. Throws the manifest's own error when one can't be used: nothing
 * is passed over in silence; and ArtifactMissingError when there is none, unless `optional`.
 */
export async function openArtifacts(
  root: string,
  model: ModelSpec,
  optional = false,
): Promise<Map<number, OpenedArtifact>> {
  const found = new Map<number, OpenedArtifact>();
  for (const bucket of model.buckets) {
    const key = { model, bucket };
    const artifact = await readRegistered(root, key);
    if (!artifact) continue;
    requirePortable(artifact);
    found.set(bucket, artifact);
  }
  if (found.size === 0 && !optional) await requireArtifact(root, { model, bucket: model.buckets[0]! });
  return found;
}

async function readRegistered(root: string, key: ArtifactKey): Promise<OpenedArtifact | undefined> {
  try {
    return (await readWhole(root, key, async () => undefined)).artifact;
  } catch (error) {
    if (error instanceof ArtifactMissingError) return undefined;
    throw error;
  }
}

/** Evidence counts for the executor that made it: answers on the CPU need a gate that ran there (fault B08). */
export function requirePortable({ manifest, folder }: OpenedArtifact): void {
  if (manifest.evidence?.kind === 'portable') return;
  throw new ComputeUnitMismatchError('COMPUTE_UNITS_MISMATCH', 'this artifact has no portable evidence', {
    where: folder,
    expected: 'PORTABLE_CPU',
    found: manifest.placement.compute_units,
    hint: 'build it on this machine',
  });
}

/**
 * The smallest offered bucket that holds a row of so many tokens.
 * Throws UnsupportedShapeError ROW_TOO_LONG, or ArtifactMissingError for an offered bucket that is not registered.
 */
export function bucketFor(tokens: number, model: ModelSpec, artifacts: ArtifactSet): number {
  const offered = model.buckets.find((bucket) => bucket >= tokens);
  if (offered === undefined)
    throw new UnsupportedShapeError(
      'ROW_TOO_LONG',
      `a row has ${tokens} tokens, the largest bucket ${model.buckets.at(-1)}`,
      {
        expected: model.buckets,
        found: tokens,
        hint: `shorten it, or build what holds it: npm run build-artifacts -- --model ${model.name} --graph any-length`,
      },
    );
  const registered = [...artifacts.keys()].find((bucket) => bucket >= tokens);
  if (registered !== undefined) return registered;
  throw new ArtifactMissingError('ARTIFACT_MISSING', `no registered artifact of ${model.name} holds ${tokens} tokens`, {
    expected: `L${offered}`,
    found: [...artifacts.keys()].map((bucket) => `L${bucket}`),
    hint: `npm run build-artifacts -- --model ${model.name} --length ${offered}`,
  });
}
