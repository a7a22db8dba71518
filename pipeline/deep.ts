import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DENSE_FOLDER, type OpenedDense } from '../registry/dense.js';
import { evidenceKind } from '../registry/evidence.js';
import type { ModelSpec } from '../registry/models.js';
import type { OpenedArtifact } from '../registry/read.js';
import { checkProvenWith } from '../runtime/checkpoint-pins.js';
import { LayaError } from '../schemas/errors.js';
import { placeDense, proveDense } from './dense/prove.js';
import type { Context } from './events.js';
import { checkProfile, hasPortableEvidence, isProvenHere, profileText } from './profile.js';
import { proveParity } from './stages/parity.js';
import { provePlacement } from './stages/place.js';
import { type Resolved, resolve } from './stages/resolve.js';
import type { Toolchain } from './toolchain/toolchain.js';

/** Gives a toolchain for evidence of a kind, ready; or the one that this machine has, whose profile is then refused. */
export type Measures = (kind: Toolchain['kind']) => Promise<Toolchain>;

/** Runs the gates of this machine again on registered artifacts and any-length graphs. Registers, records and changes nothing. */
export class DeepCheck {
  readonly #measures: Measures;
  readonly #context: Context;
  readonly #resolved = new Map<string, Promise<Resolved>>();

  constructor(measures: Measures, context: Context) {
    this.#measures = measures;
    this.#context = context;
  }

  /** Why the gates refuse the artifact, or could not run; undefined when it passes placement and parity. */
  problemOf(artifact: OpenedArtifact): Promise<LayaError | undefined> {
    return this.#problem(async (temp) => {
      const { model, bucket } = artifact.key;
      const toolchain = await this.#toolchain(artifact);
      const resolved = await this.#resolve(model, toolchain);
      checkProvenWith(artifact, resolved.files);
      const candidate = { resolved, bucket, model: artifact.model, temp };
      await provePlacement(candidate, this.#context);
      await proveParity(candidate, this.#context);
    });
  }

  /** The same of an any-length graph, with its own gates. */
  problemOfDense(dense: OpenedDense): Promise<LayaError | undefined> {
    return this.#problem(async (temp) => {
      const resolved = await this.#resolve(dense.model, await this.#measures('portable'));
      checkProvenWith(dense, resolved.files);
      const candidate = { resolved, folder: join(dense.folder, DENSE_FOLDER), temp };
      await placeDense(candidate);
      await proveDense(candidate, this.#context);
    });
  }

  async #problem(gates: (temp: string) => Promise<void>): Promise<LayaError | undefined> {
    const temp = await mkdtemp(join(tmpdir(), 'laya-deep-'));
    try {
      await gates(temp);
      return undefined;
    } catch (error) {
      this.#context.signal.throwIfAborted();
      if (error instanceof LayaError) return error;
      throw error;
    } finally {
      await rm(temp, { recursive: true, force: true });
    }
  }

  /**
   * What measures the manifest's own evidence, or where that was proven on another kind of machine, the portable evidence
   * it has beside it. Throws ArtifactRevisionError PROFILE_MISMATCH when this machine can check neither.
   */
  async #toolchain({ key, manifest, folder }: OpenedArtifact): Promise<Toolchain> {
    const own = await this.#measures(evidenceKind(manifest));
    if (isProvenHere(manifest, own) || !hasPortableEvidence(manifest)) {
      checkProfile(manifest, own, folder);
      return own;
    }
    const reason = `evidence of ${profileText(manifest)} can't be measured here; its portable evidence is`;
    this.#context.emit({ kind: 'skipped', bucket: key.bucket, reason });
    return this.#measures('portable');
  }

  /** The checkpoint and goldens of a model, found once for each toolchain. */
  #resolve(model: ModelSpec, toolchain: Toolchain): Promise<Resolved> {
    const name = `${model.name} ${toolchain.kind}`;
    const order = { model, buckets: model.buckets, force: false, toolchain };
    const resolved = this.#resolved.get(name) ?? resolve(order, this.#context);
    this.#resolved.set(name, resolved);
    return resolved;
  }
}
