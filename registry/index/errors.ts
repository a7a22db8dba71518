import { LayaError } from '../../schemas/errors.js';

export type IndexErrorCode =
  /** The commit has no index. */
  | 'INDEX_MISSING'
  /** Not an index, or one with an entry that can't be used. */
  | 'INDEX_INVALID'
  /** Of a later version than this release reads. */
  | 'INDEX_NEWER'
  | 'INDEX_TOO_LARGE'
  /** Two archives answer one question. */
  | 'INDEX_AMBIGUOUS'
  /** It names a file that the same commit does not have, or has with other bytes. */
  | 'INDEX_STALE'
  /** Older than the one that was last read from there. */
  | 'INDEX_ROLLBACK';

/** An index of prebuilt artifacts that can't be gone by. Nothing was downloaded by it. */
export class IndexError extends LayaError<IndexErrorCode> {}
