import { ArtifactMissingError } from '../../registry/errors.js';
import { listArtifacts, type Verification, verifyListing } from '../../registry/list.js';
import { findModel } from '../../registry/models.js';
import { openContext, parseBuckets, printData } from '../edge.js';
import type { GlobalOptions } from '../options.js';
import { bytesText, table } from '../text.js';

interface VerifyOptions extends GlobalOptions {
  readonly length?: readonly string[];
}

/** `verify`: reads every byte, reports each artifact, changes nothing; exit code 1 when one fails. */
export async function verify(name: string | undefined, options: VerifyOptions): Promise<void> {
  const context = openContext(options);
  const model = name === undefined ? undefined : findModel(name);
  const offered = model?.buckets ?? [64, 96, 128, 256];
  const buckets = parseBuckets(options.length, offered);
  const chosen = (await listArtifacts(context.root)).filter(({ path, key }) => {
    if (model && !path.startsWith(`${model.name}/`)) return false;
    return options.length === undefined || (key !== undefined && buckets.includes(key.bucket));
  });
  if (chosen.length === 0)
    throw new ArtifactMissingError('ARTIFACT_MISSING', 'there is nothing to verify', {
      where: context.root,
      hint: `npm run build-artifacts -- --model ${model?.name ?? 'laya-tiny'}`,
    });
  const results: Verification[] = [];
  for (const [done, listing] of chosen.entries()) {
    context.emit({ kind: 'progress', label: 'verifying', done, total: chosen.length });
    results.push(await verifyListing(listing));
  }
  await printData(options.json ? JSON.stringify(results.map(record), null, 1) : text(results));
  if (results.some(({ problem }) => problem)) process.exitCode = 1;
}

function text(results: readonly Verification[]): string {
  const rows = results.map(({ path, digest, problem }) => [
    path,
    problem ? problem.code : 'ok',
    digest ? bytesText(digest.bytes) : '-',
  ]);
  const problems = results.flatMap(({ path, problem }) => (problem ? [`${path}: ${problem.message}`] : []));
  return [table(['ARTIFACT', 'RESULT', 'SIZE'], rows), ...problems].join('\n');
}

function record({ path, digest, problem }: Verification) {
  return {
    path,
    ok: problem === undefined,
    artifact_sha256: digest?.v1 ?? null,
    tree_v2: digest?.v2 ?? null,
    bytes: digest?.bytes ?? null,
    problem: problem?.toJSON() ?? null,
  };
}
