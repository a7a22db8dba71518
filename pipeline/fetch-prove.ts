import { join } from 'node:path';
import { writeFileDurably } from '../registry/durable.js';
import { COMPILED, MANIFEST } from '../registry/paths.js';
import { shareFiles } from '../registry/sharing.js';
import type { Staging } from '../registry/staging.js';
import { lookAt } from '../registry/stamps.js';
import { checkProvenWith } from '../runtime/checkpoint-pins.js';
import type { Context } from './events.js';
import { proveImport, reject } from './import.js';
import { isRefusal } from './report.js';
import { resolve } from './stages/resolve.js';
import type { Unpacked } from './stages/unpack.js';
import type { Stopwatch } from './stopwatch.js';

/** The gates on every model in staging, each manifest completed there; the first refusal ends it. */
export async function proveAll(
  all: readonly Unpacked[],
  build: Parameters<typeof resolve>[0],
  staging: Staging,
  watch: Stopwatch,
  context: Context,
): Promise<{ unpacked: Unpacked; record: { path: string; code: string; reason: string } } | undefined> {
  const resolved = await watch.stage(resolve, build);
  for (const unpacked of all) {
    const { key, folder, archive } = unpacked;
    const model = join(folder, COMPILED);
    watch.startBucket(key.bucket);
    checkProvenWith({ key, folder, model, manifest: archive.manifest }, resolved.files);
    await shareFiles(context.root, key, model, archive.tree);
    const { own: look } = await lookAt(model);
    const candidate = { resolved, bucket: key.bucket, model, temp: staging.temp };
    try {
      const text = await proveImport(unpacked, candidate, look, watch, context);
      await writeFileDurably(join(folder, MANIFEST), text);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return { unpacked, record: await reject(key, watch.running ?? 'fetch', error, context) };
    }
  }
  return undefined;
}
