import { readWhole } from '../registry/generation.js';
import { verifyTree } from '../registry/read.js';
import type { Staging } from '../registry/staging.js';
import type { TreeDigest } from '../registry/tree.js';
import type { Context } from './events.js';
import type { BuildOrder } from './order.js';
import { compile } from './stages/compile.js';
import { convert } from './stages/convert.js';
import { resolve } from './stages/resolve.js';
import { inStaging } from './staging.js';
import { Stopwatch } from './stopwatch.js';
import { installTools } from './tools/all.js';

/** One file of the registered artifact, of the rebuilt one, or of both. */
export interface FileComparison {
  readonly path: string;
  readonly verdict: 'same' | 'different' | 'missing' | 'extra';
  /** SHA-256 as registered and as rebuilt. */
  readonly registered: string | null;
  readonly rebuilt: string | null;
}

export interface ReproduceReport {
  readonly model: string;
  readonly bucket: number;
  readonly folder: string;
  readonly files: readonly FileComparison[];
  /** Tree hashes v1. */
  readonly registered: string;
  readonly rebuilt: string;
  readonly isSame: boolean;
  /** Seconds of the whole command. */
  readonly seconds: number;
}

/**
 * Builds the order's one bucket again, from the checkpoint as far as the compiled model, and compares it file by file
 * with the registered artifact, whose bytes are verified first. Nothing is registered and nothing is left. Throws what
 * the stages throw, and Artifact*Error for the registered artifact.
 */
export async function reproduceArtifact(order: BuildOrder, context: Context): Promise<ReproduceReport> {
  const watch = new Stopwatch(context);
  const key = { model: order.model, bucket: order.buckets[0]! };
  const { artifact, value: registered } = await readWhole(context.root, key, (found) => verifyTree(found));
  await order.toolchain.preflight(context);
  const rebuilt = await inStaging(key, watch, context, (staging) => rebuild(order, staging, watch, context));
  return {
    model: order.model.name,
    bucket: key.bucket,
    folder: artifact.folder,
    files: compareFiles(registered, rebuilt),
    registered: registered.v1,
    rebuilt: rebuilt.v1,
    isSame: registered.v1 === rebuilt.v1 && registered.v2 === rebuilt.v2,
    seconds: watch.total(),
  };
}

async function rebuild(order: BuildOrder, staging: Staging, watch: Stopwatch, context: Context): Promise<TreeDigest> {
  await installTools(order.toolchain, context);
  const resolved = await watch.stage(resolve, order);
  const converted = await watch.stage(convert, { resolved, staging });
  const bucket = order.buckets[0]!;
  watch.startBucket(bucket);
  return (await watch.stage(compile, { converted, bucket })).digest;
}

function compareFiles(registered: TreeDigest, rebuilt: TreeDigest): FileComparison[] {
  const [before, after] = [registered, rebuilt].map(({ files }) => new Map(files.map((one) => [one.path, one.sha256])));
  const paths = [...new Set([...before!.keys(), ...after!.keys()])].sort();
  return paths.map((path) => {
    const [old, now] = [before!.get(path) ?? null, after!.get(path) ?? null];
    const verdict = old === now ? 'same' : old === null ? 'extra' : now === null ? 'missing' : 'different';
    return { path, verdict, registered: old, rebuilt: now };
  });
}
