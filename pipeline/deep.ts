import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ModelSpec } from '../registry/models.js';
import type { OpenedArtifact } from '../registry/read.js';
import { checkProvenWith } from '../runtime/checkpoint-pins.js';
import { LayaError } from '../schemas/errors.js';
import type { Context } from './events.js';
import { checkProfile } from './profile.js';
import { proveParity } from './stages/parity.js';
import { provePlacement } from './stages/place.js';
import { type Resolved, resolve } from './stages/resolve.js';
import type { Toolchain } from './toolchain/toolchain.js';

/** Runs the gates of this machine again on registered artifacts. Registers, records and changes nothing. */
export class DeepCheck {
  readonly #toolchain: Toolchain;
  readonly #context: Context;
  readonly #resolved = new Map<ModelSpec, Promise<Resolved>>();

  constructor(toolchain: Toolchain, context: Context) {
    this.#toolchain = toolchain;
    this.#context = context;
  }

  /** Why the gates refuse the artifact, or could not run; undefined when it passes placement and parity. */
  async problemOf(artifact: OpenedArtifact): Promise<LayaError | undefined> {
    const { model, bucket } = artifact.key;
    const temp = await mkdtemp(join(tmpdir(), 'laya-deep-'));
    try {
      checkProfile(artifact.manifest, this.#toolchain, artifact.folder);
      const resolved = await this.#resolve(model);
      checkProvenWith(artifact, resolved.files);
      const candidate = { resolved, bucket, model: artifact.model, temp };
      await provePlacement(candidate);
      await proveParity(candidate, this.#context);
      return undefined;
    } catch (error) {
      this.#context.signal.throwIfAborted();
      if (error instanceof LayaError) return error;
      throw error;
    } finally {
      await rm(temp, { recursive: true, force: true });
    }
  }

  /** The checkpoint and goldens of a model, found once. */
  #resolve(model: ModelSpec): Promise<Resolved> {
    const order = { model, buckets: model.buckets, force: false, toolchain: this.#toolchain };
    const resolved = this.#resolved.get(model) ?? resolve(order, this.#context);
    this.#resolved.set(model, resolved);
    return resolved;
  }
}
