import { StoreError } from '../../registry/errors.js';
import { locateArtifact } from '../../registry/locate.js';
import { findModel } from '../../registry/models.js';
import { type ArtifactKey, artifactFolder } from '../../registry/paths.js';
import { findProblem, moveToQuarantine } from '../../registry/quarantine.js';
import {
  dropQuarantined,
  listQuarantine,
  type QuarantineEntry,
  quarantinedKey,
  restoreQuarantined,
} from '../../registry/quarantine-entries.js';
import { storeAccess } from '../../registry/staging.js';
import { openContext, parseBuckets, printData } from '../edge.js';
import type { Context } from '../events.js';
import { lockArtifact } from '../lock.js';
import type { GlobalOptions } from '../options.js';
import { bytesText, table } from '../text.js';

/** `quarantine list`: what was taken out of use, when and why. */
export async function quarantineList(options: GlobalOptions): Promise<void> {
  const entries = await listQuarantine(openContext(options).root);
  if (options.json) return printData(JSON.stringify(entries.map(record), null, 1));
  if (entries.length === 0) return printData('nothing is in quarantine');
  const rows = entries.map(({ name, bytes, record: found, problem }) => {
    return [name, bytesText(bytes), found?.at ?? '-', found?.reason ?? problem?.message ?? '-'];
  });
  return printData(table(['NAME', 'SIZE', 'SINCE', 'REASON'], rows));
}

const record = ({ name, bytes, record: found, problem }: QuarantineEntry) => ({
  name,
  bytes,
  reason: found?.reason ?? null,
  at: found?.at ?? null,
  from: found?.from ?? null,
  problem: problem?.toJSON() ?? null,
});

interface AddOptions extends GlobalOptions {
  readonly length: readonly string[];
  readonly reason?: string;
}

/** `quarantine add`: moves artifacts that are not whole; with `--reason` also ones that are. */
export async function quarantineAdd(name: string, options: AddOptions): Promise<void> {
  const context = openContext(options);
  const model = findModel(name);
  const moved: { bucket: number; name: string | null }[] = [];
  for (const bucket of parseBuckets(options.length, model.buckets)) {
    const key = { model, bucket };
    const entry = await locked(key, context, () => add(key, options.reason, context));
    moved.push({ bucket, name: entry ?? null });
  }
  if (options.json) return printData(JSON.stringify(moved, null, 1));
  return printData(moved.map((one) => `L${one.bucket}: ${one.name ?? 'nothing had to be moved'}`).join('\n'));
}

async function add(key: ArtifactKey, reason: string | undefined, context: Context): Promise<string | undefined> {
  const folder = (await locateArtifact(context.root, key)) ?? artifactFolder(context.root, key);
  const problem = await findProblem(context.root, key);
  if (!problem && reason === undefined)
    throw new StoreError('ARTIFACT_WHOLE', 'the artifact passes every check', {
      where: folder,
      hint: 'say why it should go all the same: --reason TEXT',
    });
  const why = reason ?? problem?.message ?? '';
  return moveToQuarantine(context.root, key, { reason: why, now: context.now(), evenWhole: reason !== undefined });
}

/** `quarantine restore`: registers an entry again, if it passes every check. */
export async function quarantineRestore(name: string, options: GlobalOptions): Promise<void> {
  const context = openContext(options);
  const key = quarantinedKey(context.root, name);
  const path = await locked(key, context, () => restoreQuarantined(context.root, name, key, context));
  await printData(options.json ? JSON.stringify({ name, path }, null, 1) : `registered: ${path}`);
}

/** `quarantine drop`: removes entries for good. */
export async function quarantineDrop(names: readonly string[], options: GlobalOptions): Promise<void> {
  const { root } = openContext(options);
  for (const name of names) await dropQuarantined(root, name);
  await printData(options.json ? JSON.stringify({ removed: names }, null, 1) : `${names.length} removed`);
}

async function locked<T>(key: ArtifactKey, context: Context, step: () => Promise<T>): Promise<T> {
  const lock = await lockArtifact(key, context);
  try {
    return await storeAccess(context.root, step);
  } finally {
    await lock.release();
  }
}
