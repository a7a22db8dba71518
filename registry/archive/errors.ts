import { LayaError } from '../../schemas/errors.js';

export type ArchiveErrorCode =
  /** The file can't be read, or is no regular file. */
  | 'ARCHIVE_UNREADABLE'
  /** The file can't be written where it was asked for. */
  | 'ARCHIVE_UNWRITABLE'
  /** The SHA-256 of the file is not the one that was asked for. */
  | 'ARCHIVE_DIGEST'
  /** Not gzip, or gzip whose data, CRC or length is wrong. */
  | 'ARCHIVE_CORRUPT'
  /** The file ends before the archive does. */
  | 'ARCHIVE_TRUNCATED'
  /** Something follows the archive's end. */
  | 'ARCHIVE_TRAILING'
  /** A tar header that readers could understand in different ways. */
  | 'ARCHIVE_HEADER'
  /** A member that no artifact has, or whose name is not of the safe alphabet. */
  | 'ARCHIVE_NAME'
  /** A companion file of a Mac or its Finder. */
  | 'ARCHIVE_COMPANION'
  /** A link, device or other member that is neither a regular file nor a folder. */
  | 'ARCHIVE_TYPE'
  /** Two members for one path, also when only letter case tells them apart. */
  | 'ARCHIVE_DUPLICATE'
  /** Too many members, too many bytes, too deep, too well compressed. */
  | 'ARCHIVE_LIMIT'
  /** No manifest or no model in it. */
  | 'ARCHIVE_INCOMPLETE'
  /** It holds another artifact than the one that was asked for. */
  | 'ARCHIVE_OTHER';

/** An archive that is not exactly one artifact. Nothing was registered, and nothing of it is kept. */
export class ArchiveError extends LayaError<ArchiveErrorCode> {}
