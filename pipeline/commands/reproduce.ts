import { requireArtifact } from '../../registry/locate.js';
import { findModel } from '../../registry/models.js';
import type { ArtifactKey } from '../../registry/paths.js';
import { readArtifact } from '../../registry/read.js';
import { openContext, parseBuckets, printData } from '../edge.js';
import { UsageError } from '../errors.js';
import type { Context } from '../events.js';
import type { GlobalOptions } from '../options.js';
import { type ReproduceReport, reproduceArtifact } from '../reproduce.js';
import { table } from '../text.js';
import { hereToolchain } from '../toolchain/here.js';
import type { Toolchain } from '../toolchain/toolchain.js';

interface ReproduceOptions extends GlobalOptions {
  readonly length: readonly string[];
  readonly checkpoint?: string;
}

/**
 * `reproduce`: builds one artifact again, with the kind of compiler that its manifest names, and compares; exit code 1
 * when a file differs. Registers nothing.
 */
export async function reproduce(name: string, options: ReproduceOptions): Promise<void> {
  const model = findModel(name);
  const buckets = parseBuckets(options.length, model.buckets);
  if (buckets.length !== 1)
    throw new UsageError('USAGE', 'one artifact is reproduced at a time', { where: '--length', found: buckets });
  const context = openContext(options);
  const order = {
    model,
    buckets,
    force: false,
    toolchain: await compilerOf({ model, bucket: buckets[0]! }, context),
    ...(options.checkpoint === undefined ? {} : { checkpoint: options.checkpoint }),
  };
  const report = await reproduceArtifact(order, context);
  await printData(options.json ? JSON.stringify(record(report), null, 1) : text(report));
  if (!report.isSame) process.exitCode = 1;
}

/** Throws ArtifactMissingError, and EnvironmentError TOOLCHAIN_UNAVAILABLE where that compiler can't run. */
async function compilerOf(key: ArtifactKey, context: Context): Promise<Toolchain> {
  const { manifest } = await readArtifact(key, await requireArtifact(context.root, key));
  const kind = manifest.compiler?.kind;
  return hereToolchain(kind === undefined ? {} : { toolchain: kind }, context);
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
