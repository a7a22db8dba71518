import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isSystemError } from '../../schemas/errors.js';
import { MilError } from '../errors.js';
import { type FileStat, fileStat, treeStat } from './tree.js';
import { type ExternalModel, writeData } from './weights.js';

/** Where translated models are kept: `<dir>/<key>/`. The key names the artifact, by its digest for example. */
export interface CachePlace {
  readonly dir: string;
  readonly key: string;
}

/**
 * Changes whenever the same program translates to other values, so that older copies are not used. The graph itself
 * is compared byte by byte.
 */
export const TRANSLATOR_VERSION = 2;

const MODEL_FILE = 'model.onnx';
/** How the model names its data file. */
export const DATA_FILE = 'model.onnx.data';
const STAMP_FILE = 'stamp.json';

/** Folders that a killed process left behind are removed after this long. */
const ABANDONED_MS = 60 * 60 * 1000;

const KEY = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** What a copy was made from and what it was when it was written. */
interface Stamp {
  readonly translator: number;
  readonly source: readonly FileStat[];
  readonly data: FileStat;
}

/** A model on disk, ready to be loaded. */
export interface StoredModel {
  readonly path: string;
  /** The folder to remove when it is no longer in use. */
  readonly temporary: string | undefined;
  /** False when the copy is not, or no longer, the one asked for: what was loaded meanwhile may be another. */
  unchanged(): boolean;
}

/** @throws MilError `MIL_INPUT` for a key that is not a plain file name. */
export function checkCacheKey(key: string): void {
  if (KEY.test(key)) return;
  throw new MilError('MIL_INPUT', `cache key ${JSON.stringify(key)} is not a plain name`, {
    expected: String(KEY),
    found: key,
    where: 'cache.key',
  });
}

/** True when the folder holds this very model, made by this translator from these files, and untouched since. */
function isCurrent(folder: string, model: ExternalModel, source: readonly FileStat[]): boolean {
  try {
    const stamp: unknown = JSON.parse(readFileSync(join(folder, STAMP_FILE), 'utf8'));
    const data = fileStat(join(folder, DATA_FILE), DATA_FILE);
    const expected: Stamp = { translator: TRANSLATOR_VERSION, source, data };
    if (JSON.stringify(stamp) !== JSON.stringify(expected)) return false;
    return readFileSync(join(folder, MODEL_FILE)).equals(model.bytes);
  } catch {
    return false;
  }
}

async function writeModel(folder: string, dir: string, model: ExternalModel, source: readonly FileStat[]) {
  await writeData(model, join(folder, DATA_FILE));
  await writeFile(join(folder, MODEL_FILE), model.bytes, { mode: 0o600 });
  if (JSON.stringify(treeStat(dir)) !== JSON.stringify(source)) {
    throw new MilError('MIL_BLOB', `${dir} changed while it was translated`, { where: dir, hint: 'Run it again.' });
  }
  const data = fileStat(join(folder, DATA_FILE), DATA_FILE);
  const stamp: Stamp = { translator: TRANSLATOR_VERSION, source, data };
  await writeFile(join(folder, STAMP_FILE), JSON.stringify(stamp), { mode: 0o600 });
}

/** Removes what killed processes left in the cache folder. */
async function sweep(dir: string): Promise<void> {
  for (const name of await readdir(dir)) {
    if (!name.startsWith('.building-') && !name.startsWith('.stale-')) continue;
    const folder = join(dir, name);
    const age = Date.now() - (await stat(folder).catch(() => ({ mtimeMs: Date.now() }))).mtimeMs;
    if (age > ABANDONED_MS) await rm(folder, { recursive: true, force: true });
  }
}

/** Moves what stands in the place of a copy aside and removes it. */
async function clear(place: CachePlace): Promise<void> {
  const stale = join(place.dir, `.stale-${randomBytes(6).toString('hex')}`);
  await rename(join(place.dir, place.key), stale);
  await rm(stale, { recursive: true, force: true });
}

/** Moves a finished folder to its place. False when something stands there. */
async function publish(staged: string, place: CachePlace): Promise<boolean> {
  try {
    await rename(staged, join(place.dir, place.key));
    return true;
  } catch (error) {
    if (isSystemError(error)) return false;
    throw error;
  }
}

function temporaryModel(folder: string): StoredModel {
  return { path: join(folder, MODEL_FILE), temporary: folder, unchanged: () => true };
}

function cachedModel(place: CachePlace, model: ExternalModel, source: readonly FileStat[]): StoredModel {
  const folder = join(place.dir, place.key);
  const unchanged = () => isCurrent(folder, model, source);
  return { path: join(folder, MODEL_FILE), temporary: undefined, unchanged };
}

async function buildInCache(
  dir: string,
  place: CachePlace,
  model: ExternalModel,
  source: readonly FileStat[],
): Promise<StoredModel> {
  await mkdir(place.dir, { recursive: true, mode: 0o700 });
  await sweep(place.dir);
  const staged = await buildIn(join(place.dir, '.building-'), dir, model, source);
  const cached = cachedModel(place, model, source);
  if (await publish(staged, place)) return cached;
  if (!cached.unchanged()) {
    await clear(place).catch(() => undefined);
    if (await publish(staged, place)) return cached;
  }
  if (!cached.unchanged()) return temporaryModel(staged);
  await rm(staged, { recursive: true, force: true });
  return cached;
}

/** A new folder with a name that starts so, and the model in it. */
async function buildIn(prefix: string, dir: string, model: ExternalModel, source: readonly FileStat[]) {
  const folder = await mkdtemp(prefix);
  try {
    await writeModel(folder, dir, model, source);
    return folder;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Brings a model with external data to disk: the copy in the cache when it is current, else a new one there by one
 * rename, else, where the cache can't be written, one in the system's folder for temporary files. A copy in the cache
 * may be replaced at any time: `unchanged` after loading tells whether what was loaded is right.
 *
 * @param dir The `.mlmodelc` folder the model was translated from.
 * @throws MilError `MIL_BLOB` when the folder changes meanwhile; `MIL_RUN` when no place has room.
 */
export async function storeModel(dir: string, place: CachePlace | null, model: ExternalModel): Promise<StoredModel> {
  const source = treeStat(dir);
  const cached = place && cachedModel(place, model, source);
  if (cached?.unchanged()) return cached;
  try {
    if (place) return await buildInCache(dir, place, model, source);
  } catch (error) {
    if (error instanceof MilError || !isSystemError(error)) throw error;
  }
  try {
    return temporaryModel(await buildIn(join(tmpdir(), 'laya-portable-'), dir, model, source));
  } catch (error) {
    if (error instanceof MilError || !isSystemError(error)) throw error;
    const needed = model.placed.reduce((sum, { tensor }) => sum + tensor.byteLength, 0);
    throw new MilError('MIL_RUN', `no room for the translated weights (${needed} bytes): ${error.message}`, {
      expected: `${needed} free bytes`,
      found: error.code,
      where: tmpdir(),
      hint: 'Free some space, or set TMPDIR to a folder that has it.',
      cause: error,
    });
  }
}
