import { join } from 'node:path';
import { HubError } from '../../registry/hub/errors.js';
import type { ModelSpec } from '../../registry/models.js';
import { packageRoot } from '../../registry/package-root.js';
import { hubCache } from '../../registry/paths.js';
import { type Checkpoint, hashFiles, readCheckpoint } from '../../runtime/checkpoint.js';
import { checkPins } from '../../runtime/checkpoint-pins.js';
import { BackendUnavailableError } from '../../runtime/errors.js';
import { openTokenizer, type PromptTokenizer } from '../../runtime/tokenizer.js';
import type { Context } from '../events.js';
import { ensureGoldens, exactRow, type GoldenRow, type Goldens, readGoldens } from '../goldens.js';
import type { BuildOrder } from '../order.js';

/** A checkpoint whose weights are the pinned ones and whose layout is one the graph is built for. */
export interface Resolved {
  readonly order: BuildOrder;
  readonly checkpoint: Checkpoint;
  readonly tokenizer: PromptTokenizer;
  /** SHA-256 of every checkpoint file, by path below its folder. */
  readonly files: Readonly<Record<string, string>>;
  readonly goldens: Goldens;
  /** The exact-length row of each bucket for the layout check. */
  readonly layoutRows: ReadonlyMap<number, GoldenRow>;
}

/** Stage 1: finds the checkpoint and the goldens, and proves that they are the pinned ones. */
export async function resolve(order: BuildOrder, context: Context): Promise<Resolved> {
  const { model } = order;
  const checkpoint = await readCheckpoint(order.checkpoint ?? (await checkpointFolder(model, context)));
  const files = await hashFiles(checkpoint);
  checkPins(model, files, checkpoint.root);
  const goldens = await readGoldens(await ensureGoldens(model, context), model);
  const tokenizer = await openTokenizer(join(checkpoint.root, 'tokenizer'));
  const layoutRows = new Map(order.buckets.map((bucket) => [bucket, exactRow(goldens, bucket)]));
  return { order, checkpoint, tokenizer, files, goldens, layoutRows };
}

/** The bundled folder, or the pinned revision in the hub cache, downloaded when it is not there. */
export async function checkpointFolder(model: ModelSpec, context: Context): Promise<string> {
  if (model.bundled) return join(packageRoot(), 'models', model.name);
  const { fetchCheckpoint } = await import('../../registry/hub/checkpoint.js');
  const fetched = await fetchCheckpoint({
    repo: model.repo,
    revision: model.revision,
    weightsSha256: model.weightsSha256,
    cacheDir: hubCache(context.env),
    env: context.env,
    offline: context.offline,
    signal: context.signal,
    onProgress: (done: number, total: number | undefined) =>
      context.emit({ kind: 'progress', label: `downloading ${model.repo}`, done, ...(total ? { total } : {}) }),
  }).catch((error: unknown) => {
    if (!(error instanceof HubError) || error.code !== 'OFFLINE') throw error;
    throw new BackendUnavailableError('OFFLINE', error.message, { ...error, cause: error });
  });
  return fetched.root;
}
