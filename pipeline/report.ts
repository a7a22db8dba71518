import { ArtifactParityError, ComputeUnitMismatchError } from '../registry/errors.js';
import type { OpenedArtifact } from '../registry/read.js';
import type { TreeDigest } from '../registry/tree.js';
import type { Manifest } from '../schemas/generated/types.js';
import type { Registered } from './stages/commit.js';

/** What became of one bucket. */
export interface BucketReport {
  readonly bucket: number;
  readonly outcome: 'registered' | 'already-registered' | 'rejected';
  readonly rows?: number;
  readonly prob_max_abs?: number;
  readonly placement?: string;
  readonly bytes?: number;
  readonly seconds: number;
  readonly artifact_sha256?: string;
  /** The registered folder, or the rejected record. */
  readonly path: string;
  readonly code?: string;
  readonly reason?: string;
}

/** What a build did, bucket by bucket; `seconds` is the whole command's. */
export interface BuildReport {
  readonly model: string;
  readonly rows: readonly BucketReport[];
  readonly seconds: number;
}

/** A gate's refusal: evidence, not an accident. It is recorded under rejected/. */
export function isRefusal(error: unknown): error is ArtifactParityError | ComputeUnitMismatchError {
  return error instanceof ArtifactParityError || error instanceof ComputeUnitMismatchError;
}

export function registeredRow({ sealed, path, outcome }: Registered, seconds: number): BucketReport {
  const { bucket, digest } = sealed.proven.placed.compiled;
  return { bucket, outcome, seconds, path, ...figures(sealed.manifest, digest) };
}

export function skippedRow({ key, folder, manifest }: OpenedArtifact, digest: TreeDigest): BucketReport {
  return { bucket: key.bucket, outcome: 'already-registered', seconds: 0, path: folder, ...figures(manifest, digest) };
}

export function rejectedRow(bucket: number, error: ArtifactParityError | ComputeUnitMismatchError, path: string) {
  return { bucket, outcome: 'rejected', seconds: 0, path, code: error.code, reason: error.message } as const;
}

function figures({ parity, placement, integrity }: Manifest, { bytes }: TreeDigest) {
  const ops = Object.entries(placement.ops ?? {}).map(([device, count]) => `${device}=${count}`);
  return {
    ...(parity.rows === undefined ? {} : { rows: parity.rows }),
    ...(parity.prob_max_abs === undefined ? {} : { prob_max_abs: parity.prob_max_abs }),
    placement: `${placement.compute_units} ${ops.join(' ')}`.trim(),
    bytes,
    artifact_sha256: integrity.artifact_sha256,
  };
}
