import { LayaError } from '../schemas/errors.js';
import type { ProbeErrorCode } from './probe/errors.js';

export type InvalidRequestCode =
  | 'QUESTIONS_INVALID'
  | 'QUESTION_INVALID'
  | 'MIN_CONFIDENCE_INVALID'
  | 'STATE_INVALID'
  | 'TEXT_INVALID'
  | 'TOO_MANY_OPTIONS';

/** A request that no checkpoint could answer; `where` names the question and field. */
export class InvalidRequestError extends LayaError<InvalidRequestCode> {}

export type ShortlistErrorCode = 'SHORTLIST_K_INVALID' | 'SHORTLIST_EMBED_INVALID' | 'SHORTLIST_VECTORS_INVALID';

/** A shortlist that can't be made: a wrong `k`, no `embed` function, or vectors of it that can't be compared. */
export class ShortlistError extends LayaError<ShortlistErrorCode> {}

export type UnsupportedShapeCode = 'ROW_TOO_LONG' | 'TOO_MANY_OPTIONS_FOR_GRAPH' | 'BUCKET_NOT_OFFERED';

/** A valid request that no artifact of the model has a shape for. */
export class UnsupportedShapeError extends LayaError<UnsupportedShapeCode> {}

export type CheckpointErrorCode =
  | 'CHECKPOINT_MISSING'
  | 'CHECKPOINT_CONFIG'
  | 'CHECKPOINT_LAYOUT'
  | 'CHECKPOINT_WEIGHTS'
  | 'CHECKPOINT_TENSORS'
  | 'CHECKPOINT_TOKENIZER';

/** A checkpoint folder that is incomplete, damaged or of a kind this project does not convert. */
export class CheckpointError extends LayaError<CheckpointErrorCode> {}

export type MilErrorCode =
  | 'MIL_MISSING'
  | 'MIL_SYNTAX'
  | 'MIL_UNSUPPORTED'
  | 'MIL_BLOB'
  | 'MIL_SHAPE'
  | 'MIL_INPUT'
  | 'MIL_RUN';

/** An `.mlmodelc` that the portable executor can't read, or won't run. */
export class MilError extends LayaError<MilErrorCode> {}

export type BackendUnavailableCode = 'DEVICE_UNAVAILABLE' | 'OFFLINE' | 'CLOSED' | 'QUEUE_FULL' | ProbeErrorCode;

/** The device asked for can't serve here or now; nothing else was tried. The probe's failures keep their code. */
export class BackendUnavailableError extends LayaError<BackendUnavailableCode> {}

export type OutputErrorCode = 'OUTPUT_SHAPE' | 'OUTPUT_NOT_FINITE';

/** Model outputs that no answer can be made of: rows or logits that are missing, NaN or infinite. */
export class OutputError extends LayaError<OutputErrorCode> {}
