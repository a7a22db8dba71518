import type { ModelSpec } from '../registry/models.js';
import type { Toolchain } from './toolchain/toolchain.js';

/** What a build was asked for, after the command line was checked. */
export interface BuildOrder {
  readonly model: ModelSpec;
  /** Ascending, without duplicates, all offered by the model. */
  readonly buckets: readonly number[];
  /** A local checkpoint folder in place of the pinned one. */
  readonly checkpoint?: string;
  readonly force: boolean;
  readonly toolchain: Toolchain;
}
