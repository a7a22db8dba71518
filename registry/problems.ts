import { isSystemError, LayaError } from '../schemas/errors.js';

/** What spoils a row of a listing: the error itself, or the system's refusal as UNREADABLE. Throws everything else. */
export function asProblem(error: unknown, where: string): LayaError {
  if (error instanceof LayaError) return error;
  if (isSystemError(error)) return new LayaError('UNREADABLE', error.message, { where, cause: error });
  throw error;
}
