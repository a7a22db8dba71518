import { lstatSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readRecord, readTextSync } from '../schemas/door.js';
import { isSystemError, LayaError } from '../schemas/errors.js';
import type { Quarantined } from '../schemas/generated/types.js';
import { quarantined as validator } from '../schemas/generated/validators.js';
import { commitArtifact } from './commit.js';
import { ArtifactRevisionError, StoreError } from './errors.js';
import { MODELS } from './models.js';
import { parseName } from './names.js';
import { type ArtifactKey, artifactFolder, MANIFEST, QUARANTINED, quarantineFolder } from './paths.js';
import { asProblem } from './problems.js';
import { parseManifest, readArtifact, verifyTree } from './read.js';
import { claim, removeClaimed } from './remove.js';
import { type StoreSteps, storeSteps } from './steps.js';
import { filesBelow, totalBytes } from './usage.js';

/** An artifact in quarantine. */
export interface QuarantineEntry {
  /** Its plain name below `quarantine/`. */
  readonly name: string;
  readonly bytes: number;
  readonly record?: Quarantined;
  /** Why the record can't be read. */
  readonly problem?: LayaError;
}

/** What is in quarantine, sorted by name. An entry that can't be read spoils only its own row. */
export async function listQuarantine(root: string): Promise<QuarantineEntry[]> {
  const folder = quarantineFolder(root);
  const names = await readdir(folder).catch((error: unknown) => {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  });
  const entries: QuarantineEntry[] = [];
  for (const name of names.sort()) {
    if (parseName(name).kind === 'pruning') continue;
    const facts = { name, bytes: totalBytes(filesBelow(join(folder, name))) };
    try {
      entries.push({ ...facts, record: await readRecord<Quarantined>(join(folder, name, QUARANTINED), validator) });
    } catch (error) {
      entries.push({ ...facts, problem: recordProblem(error, name) });
    }
  }
  return entries;
}

/**
 * The pinned artifact that an entry holds, told by its manifest. Throws StoreError NOT_QUARANTINED, Artifact*Error for a
 * manifest that can't be used, ArtifactRevisionError for an artifact that this release has no place for.
 */
export function quarantinedKey(root: string, name: string): ArtifactKey {
  const path = join(entryFolder(root, name), MANIFEST);
  const { source, artifact } = parseManifest(readTextSync(path), path);
  const model = MODELS.find((one) => one.name === source.model);
  if (model?.revision === source.revision && model.buckets.includes(artifact.length))
    return { model, bucket: artifact.length };
  throw new ArtifactRevisionError('SOURCE_MISMATCH', 'the artifact is of no pinned model, revision and bucket', {
    where: path,
    found: { model: source.model, revision: source.revision, length: artifact.length },
  });
}

/**
 * Registers a quarantined artifact that passes every check (protocol §8). The caller holds the target's lock. Throws
 * StoreError TARGET_OCCUPIED when a whole artifact stands there; on every failure the entry stays in quarantine.
 */
export async function restoreQuarantined(
  root: string,
  name: string,
  key: ArtifactKey,
  options: { readonly now: () => Date; readonly steps?: Partial<StoreSteps> },
): Promise<string> {
  const steps = storeSteps(options.steps);
  const folder = entryFolder(root, name);
  await verifyTree(await readArtifact(key, folder));
  const record = await takeRecord(folder, steps);
  try {
    const outcome = await commitArtifact(root, key, folder, { replace: false, ...options });
    if (outcome === 'registered') return artifactFolder(root, key);
  } catch (error) {
    await putRecordBack(folder, record, steps);
    throw error;
  }
  await putRecordBack(folder, record, steps);
  throw new StoreError('TARGET_OCCUPIED', 'a whole artifact is registered there', {
    where: artifactFolder(root, key),
    hint: `laya-artifacts quarantine drop ${name}`,
  });
}

/** Removes an entry for good. Throws StoreError NOT_QUARANTINED. */
export async function dropQuarantined(root: string, name: string, changed: Partial<StoreSteps> = {}): Promise<void> {
  const steps = storeSteps(changed);
  await removeClaimed(await claim(entryFolder(root, name), steps), steps);
}

/** The record's text; undefined when there is none. A restored artifact does not carry it (fault B01). */
async function takeRecord(folder: string, steps: StoreSteps): Promise<string | undefined> {
  const path = join(folder, QUARANTINED);
  try {
    const text = readTextSync(path);
    await steps.unlink(path);
    return text;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

async function putRecordBack(folder: string, record: string | undefined, steps: StoreSteps): Promise<void> {
  const isThere = await lstat(folder).then(
    () => true,
    () => false,
  );
  if (record !== undefined && isThere) await steps.write(join(folder, QUARANTINED), record);
}

/** Throws StoreError NOT_QUARANTINED unless the name is that of a folder below `quarantine/`. */
function entryFolder(root: string, name: string): string {
  const path = join(quarantineFolder(root), name);
  if (/^[^/\\\0]+$/.test(name) && name !== '.' && name !== '..' && isFolder(path)) return path;
  throw new StoreError('NOT_QUARANTINED', `${JSON.stringify(name.slice(0, 200))} is not in quarantine`, {
    where: quarantineFolder(root),
    hint: 'laya-artifacts quarantine list',
  });
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path).isDirectory();
  } catch (error) {
    if (isSystemError(error)) return false;
    throw error;
  }
}

function recordProblem(error: unknown, where: string): LayaError {
  const isMissing = isSystemError(error, 'ENOENT');
  return isMissing ? new LayaError('NO_RECORD', 'the entry has no record', { where }) : asProblem(error, where);
}
