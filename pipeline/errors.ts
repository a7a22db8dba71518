import { LayaError } from '../schemas/errors.js';

export type EnvironmentErrorCode =
  | 'NODE_UNSUPPORTED'
  | 'PYTHON_MISSING'
  | 'RUST_MISSING'
  | 'SWIFT_MISSING'
  | 'PROBE_BUILD_FAILED'
  /** The toolchain that was asked for can't work on this machine. */
  | 'TOOLCHAIN_UNAVAILABLE'
  | 'TOOL_INSTALL'
  | 'TOOL_KILLED'
  | 'TOOL_ARGUMENT';

/** A tool this machine lacks, or one that can't be installed or started. Nothing was built. */
export class EnvironmentError extends LayaError<EnvironmentErrorCode> {}

/**
 * The converter's refusal. The code is the converter's own (python-convert/README.md lists them), or
 * CONVERTER_CRASHED / CONVERTER_PROTOCOL when it gave no valid result.
 */
export class ConversionError extends LayaError {}

/** The compiler failed, or did not leave the files that every model needs. */
export class CompileError extends LayaError<'COMPILE_FAILED' | 'COMPILE_INCOMPLETE'> {}

export type GoldensErrorCode = 'GOLDENS_MISSING' | 'GOLDENS_MISMATCH' | 'GOLDENS_NO_ROWS' | 'GOLDENS_NO_EXACT_ROW';

/** References that are not there, or do not belong to the checkpoint. */
export class GoldensError extends LayaError<GoldensErrorCode> {}

/** A command line that can't be meant; exit code 2. */
export class UsageError extends LayaError<'USAGE'> {}

/** The user or the system asked this process to stop. */
export class InterruptedError extends LayaError<'INTERRUPTED'> {
  readonly signal: 'SIGINT' | 'SIGTERM';

  constructor(signal: 'SIGINT' | 'SIGTERM') {
    super('INTERRUPTED', `stopped by ${signal}; nothing more was registered`, { hint: 'run the command again' });
    this.signal = signal;
  }
}

export type PublishErrorCode =
  /** There is no token to write with. */
  | 'TOKEN_MISSING'
  /** The repository or branch is not there, and was not to be made. */
  | 'REPO_MISSING'
  /** Others were faster every time. */
  | 'PUBLISH_RACE'
  /** The hub does not have what was just committed. */
  | 'PUBLISH_UNVERIFIED'
  /** Something that belongs to this machine would be published. */
  | 'PRIVATE_CONTENT';

/** Nothing was published, or not what was to be. What was public before still is. */
export class PublishError extends LayaError<PublishErrorCode> {}
