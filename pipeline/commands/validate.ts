import { ArtifactMissingError } from '../../registry/errors.js';
import { listArtifacts } from '../../registry/list.js';
import { findModel, type ModelSpec } from '../../registry/models.js';
import { openContext, parseBuckets, printData } from '../edge.js';
import type { Context } from '../events.js';
import type { GlobalOptions } from '../options.js';
import { table } from '../text.js';
import { readyToolchain } from '../toolchain/here.js';
import { type ValidateReport, type ValidateRow, validateArtifacts } from '../validate.js';

interface ValidateOptions extends GlobalOptions {
  readonly length?: readonly string[];
  readonly checkpoint?: string;
  readonly maxRatio?: string;
}

/** `validate`: the gates of this Mac on registered artifacts; exit code 1 when one is refused. */
export async function validate(name: string, options: ValidateOptions): Promise<void> {
  const context = openContext(options);
  const model = findModel(name);
  const { length, checkpoint, maxRatio } = options;
  const wanted = length === undefined ? undefined : parseBuckets(length, model.buckets);
  const toolchain = await readyToolchain(
    { toolchain: 'apple', ...(maxRatio === undefined ? {} : { maxRatio }) },
    context,
  );
  const buckets = wanted ?? (await registeredBuckets(model, context));
  const order = { model, buckets, force: false, toolchain, ...(checkpoint === undefined ? {} : { checkpoint }) };
  const report = await validateArtifacts(order, context);
  await printData(options.json ? JSON.stringify(report, null, 1) : reportText(report));
  if (report.rows.some(({ outcome }) => outcome === 'rejected')) process.exitCode = 1;
}

/** Throws ArtifactMissingError when there is none. */
async function registeredBuckets(model: ModelSpec, { root }: Context): Promise<number[]> {
  const listings = await listArtifacts(root);
  const buckets = listings.flatMap(({ key }) => (key?.model.name === model.name ? [key.bucket] : []));
  if (buckets.length > 0) return buckets.sort((a, b) => a - b);
  throw new ArtifactMissingError('ARTIFACT_MISSING', `nothing of ${model.name} is registered here`, {
    where: root,
    hint: `build it, or: laya-artifacts fetch ${model.name}`,
  });
}

function reportText({ model, rows, seconds }: ValidateReport): string {
  const lines = rows.map((row) => [
    `L${row.bucket}`,
    row.rows === null ? '-' : String(row.rows),
    row.prob_max_abs === null ? '-' : row.prob_max_abs.toFixed(5),
    placementText(row),
    row.load_probe ? row.load_probe.ratio.toFixed(2) : '-',
    row.outcome === 'rejected' ? `refused: ${row.code}` : row.outcome,
  ]);
  const notes = rows.map(({ bucket, path, reason }) => `L${bucket}  ${path}${reason ? `: ${reason}` : ''}`);
  const head = ['BUCKET', 'ROWS', 'MAX |DP|', 'PLACEMENT', 'RATIO', 'RESULT'];
  return [table(head, lines), '', ...notes, '', `${model}: ${seconds.toFixed(1)} s`].join('\n');
}

function placementText({ placement }: ValidateRow): string {
  if (!placement) return '-';
  const ops = Object.entries(placement.ops ?? {}).map(([device, count]) => `${device}=${count}`);
  return [placement.compute_units, ...ops].join(' ');
}
