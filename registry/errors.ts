import { LayaError } from '../schemas/errors.js';

/** A model name that resolves to none of the pinned checkpoints. */
export class UnsupportedModelError extends LayaError<'MODEL_UNKNOWN'> {}

/** No artifact is registered where one was asked for. */
export class ArtifactMissingError extends LayaError<'ARTIFACT_MISSING'> {}

export type ArtifactRevisionCode =
  | 'SOURCE_MISMATCH'
  | 'GRAPH_MISMATCH'
  | 'SHAPE_MISMATCH'
  | 'QUANTIZATION_MISMATCH'
  | 'PROFILE_MISMATCH';

/** An artifact of another model, revision, graph, shape or machine than the one asked for. */
export class ArtifactRevisionError extends LayaError<ArtifactRevisionCode> {}

export type ArtifactIntegrityCode =
  | 'MANIFEST_UNREADABLE'
  | 'MANIFEST_INVALID'
  | 'TREE_MISMATCH'
  | 'TREE_INVALID'
  | 'TREE_INCOMPLETE'
  | 'EVIDENCE_INCONSISTENT';

/** An artifact whose bytes, manifest or evidence contradict each other. */
export class ArtifactIntegrityError extends LayaError<ArtifactIntegrityCode> {}

export type ArtifactParityCode = 'PARITY_FAILED' | 'PARITY_MISSING' | 'LAYOUT_CHECK' | 'GATE_POISONED';

/** Answers too far from the reference, or a gate that had nothing to compare. */
export class ArtifactParityError extends LayaError<ArtifactParityCode> {}

export type ComputeUnitMismatchCode = 'PLACEMENT_REFUSED' | 'COMPUTE_UNITS_MISMATCH' | 'LOAD_PROBE_SLOW';

/** Operations that ran, or would run, elsewhere than the evidence says. */
export class ComputeUnitMismatchError extends LayaError<ComputeUnitMismatchCode> {}

export type StoreErrorCode =
  | 'ROOT_UNWRITABLE'
  | 'DISK_FULL'
  | 'LOCK_TIMEOUT'
  | 'LOCK_LOST'
  | 'TARGET_OCCUPIED'
  | 'PATH_UNSAFE'
  | 'CROSS_DEVICE'
  | 'NOT_QUARANTINED'
  | 'ARTIFACT_WHOLE';

/** The store on disk can't do what was asked; nothing registered was changed. */
export class StoreError extends LayaError<StoreErrorCode> {}
