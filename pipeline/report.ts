import { ArtifactParityError, ComputeUnitMismatchError } from '../registry/errors.js';
import type { OpenedArtifact } from '../registry/read.js';
import type { TreeDigest } from '../registry/tree.js';
import { ProbeError } from '../runtime/probe/errors.js';
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

/** Why an artifact was not proven. */
export type Refusal = ArtifactParityError | ComputeUnitMismatchError | ProbeError;

/**
 * A gate's refusal: evidence, not an accident. It is recorded under rejected/. So is a laya-probe that broke off in a
 * gate, under its own code: that says that the artifact could not be proven here, not that it is wrong (fault F28).
 */
export function isRefusal(error: unknown): error is Refusal {
  return [ArtifactParityError, ComputeUnitMismatchError, ProbeError].some((kind) => error instanceof kind);
}

export function registeredRow({ sealed, path, outcome }: Registered, seconds: number): BucketReport {
  const { bucket, digest } = sealed.proven.placed.compiled;
  return { bucket, outcome, seconds, path, ...figures(sealed.manifest, digest) };
}

export function skippedRow({ key, folder, manifest }: OpenedArtifact, digest: TreeDigest): BucketReport {
  return { bucket: key.bucket, outcome: 'already-registered', seconds: 0, path: folder, ...figures(manifest, digest) };
}

export function rejectedRow(bucket: number, error: Refusal, path: string) {
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
