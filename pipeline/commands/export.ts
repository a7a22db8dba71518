import { mkdir, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { type WrittenArchive, writeArchive } from '../../registry/archive/write.js';
import { readWhole } from '../../registry/generation.js';
import { locateArtifact, requireArtifact } from '../../registry/locate.js';
import { findModel, type ModelSpec } from '../../registry/models.js';
import { openContext, parseBuckets, printData } from '../edge.js';
import { UsageError } from '../errors.js';
import type { Context } from '../events.js';
import type { GlobalOptions } from '../options.js';
import { bytesText, table } from '../text.js';

interface ExportOptions extends GlobalOptions {
  readonly length?: readonly string[];
  readonly out?: string;
}

/** More threads than this are no faster: reading and hashing the content takes one. */
const MOST_THREADS = 4;

/** `export`: one archive a bucket, each verified while it is written, with its SHA-256 beside it. */
export async function exportArtifacts(name: string, options: ExportOptions): Promise<void> {
  const model = findModel(name);
  const context = openContext(options);
  const buckets = await chooseBuckets(model, options.length, context);
  const targets = await chooseTargets(model, buckets, options.out ?? '.');
  const threads = Math.min(availableParallelism(), MOST_THREADS);
  const written: (WrittenArchive & { bucket: number })[] = [];
  for (const [done, bucket] of buckets.entries()) {
    context.emit({ kind: 'progress', label: `exporting L${bucket}`, done, total: buckets.length });
    const write = ({ folder }: { folder: string }) =>
      writeArchive({ model, bucket }, folder, targets[done]!, { threads, signal: context.signal });
    const { value } = await readWhole(context.root, { model, bucket }, write);
    written.push({ bucket, ...value });
  }
  if (options.json)
    await printData(
      JSON.stringify(
        written.map((one) => record(model, one)),
        null,
        1,
      ),
    );
  else await printData(table(['BUCKET', 'SIZE', 'SHA-256', 'FILE'], written.map(row)));
}

/** The buckets that were asked for, or all that are registered; ArtifactMissingError when there is none. */
async function chooseBuckets(model: ModelSpec, length: readonly string[] | undefined, { root }: Context) {
  const buckets = parseBuckets(length, model.buckets);
  const registered: number[] = [];
  for (const bucket of buckets) {
    if (length !== undefined) await requireArtifact(root, { model, bucket });
    if ((await locateArtifact(root, { model, bucket })) !== undefined) registered.push(bucket);
  }
  if (registered.length === 0) await requireArtifact(root, { model, bucket: buckets[0]! });
  return registered;
}

/** A path that ends in `.tar.gz` is the file itself; any other is a folder, made when it is not there. */
async function chooseTargets(model: ModelSpec, buckets: readonly number[], out: string): Promise<string[]> {
  const isFolder = await stat(out).then(
    (found) => found.isDirectory(),
    () => !out.endsWith('.tar.gz'),
  );
  if (!isFolder && buckets.length > 1)
    throw new UsageError('USAGE', 'several buckets do not fit into one archive', {
      where: '--out',
      found: buckets,
      hint: 'name a folder, or one bucket with --length',
    });
  if (!isFolder) return [resolve(out)];
  await mkdir(out, { recursive: true }).catch((cause: unknown) => {
    throw new UsageError('USAGE', `the folder can't be made: ${String(cause)}`, { where: out, cause });
  });
  return buckets.map((bucket) => resolve(join(out, `${model.name}-L${bucket}.tar.gz`)));
}

const row = ({ bucket, bytes, sha256, path }: WrittenArchive & { bucket: number }): string[] => [
  `L${bucket}`,
  bytesText(bytes),
  sha256,
  path,
];

function record(
  model: ModelSpec,
  { bucket, path, bytes, sha256, artifactSha256 }: WrittenArchive & { bucket: number },
) {
  return { model: model.name, bucket, path, bytes, archive_sha256: sha256, artifact_sha256: artifactSha256 };
}
