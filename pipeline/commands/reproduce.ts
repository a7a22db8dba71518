import { findModel } from '../../registry/models.js';
import { openContext, parseBuckets, printData } from '../edge.js';
import { UsageError } from '../errors.js';
import type { GlobalOptions } from '../options.js';
import { type ReproduceReport, reproduceArtifact } from '../reproduce.js';
import { table } from '../text.js';
import { portableToolchain } from '../toolchain/portable.js';

interface ReproduceOptions extends GlobalOptions {
  readonly length: readonly string[];
  readonly checkpoint?: string;
}

/** `reproduce`: builds one artifact again and compares; exit code 1 when a file differs. Registers nothing. */
export async function reproduce(name: string, options: ReproduceOptions): Promise<void> {
  const model = findModel(name);
  const buckets = parseBuckets(options.length, model.buckets);
  if (buckets.length !== 1)
    throw new UsageError('USAGE', 'one artifact is reproduced at a time', { where: '--length', found: buckets });
  const order = {
    model,
    buckets,
    force: false,
    toolchain: portableToolchain(),
    ...(options.checkpoint === undefined ? {} : { checkpoint: options.checkpoint }),
  };
  const report = await reproduceArtifact(order, openContext(options));
  await printData(options.json ? JSON.stringify(record(report), null, 1) : text(report));
  if (!report.isSame) process.exitCode = 1;
}

const record = ({ isSame, ...rest }: ReproduceReport) => ({ ...rest, same: isSame });

function text({ model, bucket, files, registered, rebuilt, isSame, seconds }: ReproduceReport): string {
  const rows = files.map(({ path, verdict, registered: before, rebuilt: after }) => {
    return [path, verdict, before?.slice(0, 12) ?? '-', after?.slice(0, 12) ?? '-'];
  });
  const verdict = isSame ? `the same bytes again (${registered})` : `not the same: ${registered}, now ${rebuilt}`;
  const summary = `${model} L${bucket}: ${verdict}, ${seconds.toFixed(1)} s`;
  return [table(['FILE', 'RESULT', 'REGISTERED', 'REBUILT'], rows), summary].join('\n');
}
