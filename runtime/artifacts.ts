import { ArtifactMissingError, ComputeUnitMismatchError } from '../registry/errors.js';
import { evidenceKind, proofsOf } from '../registry/evidence.js';
import { readWhole } from '../registry/generation.js';
import { requireArtifact } from '../registry/locate.js';
import type { ModelSpec } from '../registry/models.js';
import type { ArtifactKey } from '../registry/paths.js';
import type { OpenedArtifact } from '../registry/read.js';
import { UnsupportedShapeError } from './errors.js';

/** Registered artifacts of one model that one device may use, by bucket. */
export type ArtifactSet = ReadonlyMap<number, OpenedArtifact>;

/**
 * Reads the manifests of all of a model's registered artifacts. Throws the manifest's own error when one can't be used:
 * nothing is passed over in silence.
 */
export async function readArtifacts(root: string, model: ModelSpec): Promise<ArtifactSet> {
  const found = new Map<number, OpenedArtifact>();
  for (const bucket of model.buckets) {
    const artifact = await readRegistered(root, { model, bucket });
    if (artifact) found.set(bucket, artifact);
  }
  return found;
}

/** Those whose evidence is of a kind: `portable` lets device `cpu` use them, `apple` device `ane` (fault B08). */
export function artifactsOf(kind: 'portable' | 'apple', registered: ArtifactSet): Map<number, OpenedArtifact> {
  return new Map([...registered].filter(([, artifact]) => hasEvidence(kind, artifact)));
}

/**
 * Throws because no registered artifact has evidence of the kind that the device needs: ComputeUnitMismatchError, or
 * ArtifactMissingError when there is none at all.
 */
export async function refuseDevice(
  root: string,
  model: ModelSpec,
  registered: ArtifactSet,
  kind: 'portable' | 'apple',
): Promise<void> {
  const [first] = registered.values();
  if (!first) await requireArtifact(root, { model, bucket: model.buckets[0]! });
  else requireEvidence(kind, first);
}

async function readRegistered(root: string, key: ArtifactKey): Promise<OpenedArtifact | undefined> {
  try {
    return (await readWhole(root, key, async () => undefined)).artifact;
  } catch (error) {
    if (error instanceof ArtifactMissingError) return undefined;
    throw error;
  }
}

/** Portable evidence counts wherever it stands in the manifest, Apple's as the manifest's own, on whose machine it is. */
function hasEvidence(kind: 'portable' | 'apple', { manifest }: Pick<OpenedArtifact, 'manifest'>): boolean {
  const proofs = kind === 'portable' ? proofsOf(manifest) : [manifest];
  return proofs.some((proof) => evidenceKind(proof) === kind);
}

/** Evidence counts for the executor that made it: answers on a device need a gate that ran there (fault B08). */
export function requireEvidence(kind: 'portable' | 'apple', { manifest, folder }: OpenedArtifact): void {
  if (hasEvidence(kind, { manifest })) return;
  throw new ComputeUnitMismatchError('COMPUTE_UNITS_MISMATCH', `this artifact has no ${kind} evidence`, {
    where: folder,
    expected: kind === 'portable' ? 'PORTABLE_CPU' : 'CPU_AND_NE',
    found: manifest.placement.compute_units,
    hint: 'build it on this machine',
  });
}

/**
 * The smallest offered bucket that holds a row of so many tokens.
 * Throws UnsupportedShapeError ROW_TOO_LONG, or ArtifactMissingError for an offered bucket that is not registered.
 */
export function bucketFor(tokens: number, model: Pick<ModelSpec, 'name' | 'buckets'>, artifacts: ArtifactSet): number {
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
