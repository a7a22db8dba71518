import { isSystemError, LayaError } from '../schemas/errors.js';
import { ArtifactIntegrityError } from './errors.js';

/** What spoils a row of a listing: the error itself, or the system's refusal as UNREADABLE. Throws everything else. */
export function asProblem(error: unknown, where: string): LayaError {
  if (error instanceof LayaError) return error;
  if (isSystemError(error)) return new LayaError('UNREADABLE', error.message, { where, cause: error });
  throw error;
}

/** The error of a folder that stands where an artifact should, and is none. */
export function incomplete(folder: string): LayaError {
  return new ArtifactIntegrityError('TREE_INCOMPLETE', 'the folder has no manifest or no model', { where: folder });
}
