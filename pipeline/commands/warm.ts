import { setTimeout as pause } from 'node:timers/promises';
import { ArtifactMissingError } from '../../registry/errors.js';
import { findModel, MODELS, type ModelSpec } from '../../registry/models.js';
import { SETTLED_MS } from '../../registry/stamps.js';
import { type OpenModel, openModel } from '../../runtime/open.js';
import { LayaError } from '../../schemas/errors.js';
import { openContext, parseBuckets, printData } from '../edge.js';
import type { Context } from '../events.js';
import type { GlobalOptions } from '../options.js';
import { table } from '../text.js';

interface WarmOptions extends GlobalOptions {
  readonly length?: readonly string[];
  readonly checkpoint?: string;
}

/** One artifact that was loaded, or a model that could not be. */
interface WarmRow {
  readonly model: string;
  readonly bucket?: number;
  readonly device?: 'cpu' | 'ane';
  /** On the Neural Engine all buckets are loaded at once: of the whole start, at its first bucket. */
  readonly seconds?: number;
  readonly stamp?: string;
  readonly problem?: LayaError;
}

/**
 * `warm`: loads registered artifacts once, so that the next load finds their stamps and the executor's translated
 * model, and on a Mac Core ML's own compilation. Exit code 1 when something can't be loaded.
 */
export async function warm(name: string | undefined, options: WarmOptions): Promise<void> {
  const context = openContext(options);
  const rows: WarmRow[] = [];
  for (const model of name === undefined ? MODELS : [findModel(name)])
    rows.push(...(await warmModel(model, options, context, name !== undefined)));
  if (rows.length === 0)
    throw new ArtifactMissingError('ARTIFACT_MISSING', 'there is nothing to warm', {
      where: context.root,
      hint: `npm run build-artifacts -- --model ${name ?? 'laya-tiny'}`,
    });
  await printData(options.json ? JSON.stringify(rows.map(record), null, 1) : text(rows));
  if (rows.some(({ problem }) => problem)) process.exitCode = 1;
}

/** Rows of one model. A model without artifacts has none, unless it was asked for by name. */
async function warmModel(model: ModelSpec, options: WarmOptions, context: Context, isNamed: boolean) {
  const buckets = options.length === undefined ? undefined : parseBuckets(options.length, model.buckets);
  try {
    const first = await loadOnce(model, options, context, buckets);
    const young = first.flatMap(({ bucket, stamp }) => (stamp === 'unsettled' && bucket !== undefined ? [bucket] : []));
    if (young.length === 0) return first;
    await pause(SETTLED_MS, undefined, { signal: context.signal }).catch(() => context.signal.throwIfAborted());
    const second = await loadOnce(model, options, context, young);
    return first.map((row) => second.find(({ bucket }) => bucket === row.bucket) ?? row);
  } catch (error) {
    if (!(error instanceof LayaError) || isNamed) throw error;
    return error instanceof ArtifactMissingError ? [] : [{ model: model.name, problem: error }];
  }
}

async function loadOnce(
  { name }: ModelSpec,
  { checkpoint }: WarmOptions,
  { root, env, signal }: Context,
  buckets: readonly number[] | undefined,
): Promise<WarmRow[]> {
  const model = await openModel(name, { root, env, ...(checkpoint === undefined ? {} : { checkpoint }) });
  try {
    const rows: WarmRow[] = [];
    const all = [...model.artifacts.keys()];
    for (const bucket of (buckets ?? all).filter((one) => !model.aneDevice || all.includes(one))) {
      signal.throwIfAborted();
      rows.push(await load(model, bucket));
    }
    return [...rows, ...(await aneRows(model, buckets))];
  } finally {
    await model.close();
  }
}

async function load(model: OpenModel, bucket: number): Promise<WarmRow> {
  const started = performance.now();
  const { stamp } = await model.load(bucket);
  return { model: model.spec.name, bucket, device: 'cpu', seconds: (performance.now() - started) / 1000, stamp };
}

/** What laya-probe has loaded, or why it could not. */
export async function aneRows(
  { aneDevice, spec: { name: model } }: Pick<OpenModel, 'aneDevice' | 'spec'>,
  buckets: readonly number[] | undefined,
): Promise<WarmRow[]> {
  if (!aneDevice) return [];
  try {
    const { models, seconds } = await aneDevice.session();
    const rows = Array.from(models, ([bucket, { stamp }]): WarmRow => ({ model, bucket, device: 'ane', stamp }));
    const asked = rows.filter(({ bucket }) => buckets === undefined || buckets.includes(bucket!));
    return asked.map((row, index) => (index === 0 ? { ...row, seconds } : row));
  } catch (error) {
    if (error instanceof LayaError) return [{ model, device: 'ane', problem: error }];
    throw error;
  }
}

function text(rows: readonly WarmRow[]): string {
  const cells = rows.map(({ model, bucket, device, seconds, stamp, problem }) => [
    model,
    bucket === undefined ? '-' : `L${bucket}`,
    device ?? '-',
    seconds?.toFixed(2) ?? '-',
    problem ? `${problem.code}: ${problem.message}` : (stamp ?? '-'),
  ]);
  return table(['MODEL', 'BUCKET', 'DEVICE', 'SECONDS', 'STAMP'], cells);
}

const record = ({ model, bucket, device, seconds, stamp, problem }: WarmRow) => ({
  model,
  bucket: bucket ?? null,
  device: device ?? null,
  seconds: seconds ?? null,
  stamp: stamp ?? null,
  problem: problem?.toJSON() ?? null,
});
