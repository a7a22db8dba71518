import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isSystemError, LayaError } from '../schemas/errors.js';
import { StoreError } from './errors.js';
import { type Listing, listArtifacts } from './list.js';
import { moveIfFree } from './move.js';
import { portableModelsFolder } from './paths.js';
import { ageOf, judge, type PruneReason, type PruneRules } from './prune-rules.js';
import { claim, removeClaimed } from './remove.js';
import { type StoreSteps, storeSteps } from './steps.js';
import { type FileUse, filesBelow, freedBytes, totalBytes } from './usage.js';

export type { PruneReason } from './prune-rules.js';

export interface PruneOptions {
  /** Also artifacts of other revisions than the pinned ones. */
  readonly superseded: boolean;
  /** Also quarantined artifacts. */
  readonly quarantined: boolean;
  readonly now: Date;
}

/** Something that prune would remove. */
export interface PruneEntry {
  /** POSIX path below the root. */
  readonly path: string;
  readonly reason: PruneReason;
  readonly bytes: number;
  /** Seconds since the entry itself changed. */
  readonly age: number;
}

export interface PrunePlan {
  readonly entries: readonly PruneEntry[];
  /** Copies that are never removed, and why they are there. */
  readonly kept: readonly { readonly path: string; readonly why: string }[];
  /** Entries that could not be looked at. */
  readonly problems: readonly { readonly path: string; readonly problem: string }[];
  readonly bytes: number;
  /** What the disk gains: bytes that artifacts outside the plan share stay. */
  readonly freedBytes: number;
}

/** What became of an entry: `kept` is in use by now, `stays` was claimed and its place was taken meanwhile. */
export interface PruneOutcome {
  readonly path: string;
  readonly outcome: 'removed' | 'gone' | 'kept' | 'stays' | 'failed';
  readonly problem?: LayaError;
}

/** Plans what to remove (protocol §9.1). Changes nothing; an entry that can't be looked at spoils only itself. */
export async function planPrune(root: string, options: PruneOptions): Promise<PrunePlan> {
  const rules = await rulesFor(root, options);
  const entries: PruneEntry[] = [];
  const kept: { path: string; why: string }[] = [];
  const problems: { path: string; problem: string }[] = [];
  const note = (path: string, error: unknown): void => {
    if (!isSystemError(error)) throw error;
    if (error.code !== 'ENOENT') problems.push({ path, problem: error.message });
  };
  const files: FileUse[][] = [];
  for (const path of candidates(root, note)) {
    try {
      const verdict = judge(root, path, rules);
      if (verdict && 'kept' in verdict) kept.push({ path, why: verdict.kept });
      if (!verdict || !('reason' in verdict)) continue;
      const age = Math.max(0, Math.round(ageOf(join(root, path), rules) / 1000));
      const own = filesBelow(join(root, path));
      files.push(own);
      entries.push({ path, reason: verdict.reason, bytes: totalBytes(own), age });
    } catch (error) {
      note(path, error);
    }
  }
  return { entries, kept, problems, bytes: totalBytes(files.flat()), freedBytes: freedBytes(files.flat()) };
}

/**
 * Removes the entries of a plan (protocol §9.2). The plan says only where to look: each entry is judged anew, claimed by
 * a rename, judged again, and removed or moved back (faults R07, R09).
 */
export async function executePrune(
  root: string,
  paths: readonly string[],
  options: PruneOptions & { readonly steps?: Partial<StoreSteps> },
): Promise<PruneOutcome[]> {
  const rules = await rulesFor(root, options);
  const steps = storeSteps(options.steps);
  const outcomes: PruneOutcome[] = [];
  for (const path of paths) outcomes.push(await pruneOne(root, path, rules, steps));
  return outcomes;
}

async function pruneOne(root: string, path: string, rules: PruneRules, steps: StoreSteps): Promise<PruneOutcome> {
  try {
    requireInside(root, path);
    if (!isRemovable(root, path, rules)) return { path, outcome: 'kept' };
    const claimed = await claim(join(root, path), steps);
    if (isRemovable(root, path, rules, claimed)) {
      await removeClaimed(claimed, steps);
      return { path, outcome: 'removed' };
    }
    return { path, outcome: (await moveIfFree(claimed, join(root, path), steps)) ? 'kept' : 'stays' };
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return { path, outcome: 'gone' };
    if (error instanceof LayaError) return { path, outcome: 'failed', problem: error };
    if (!isSystemError(error)) throw error;
    return {
      path,
      outcome: 'failed',
      problem: new LayaError('NOT_REMOVED', error.message, { where: path, cause: error }),
    };
  }
}

function isRemovable(root: string, path: string, rules: PruneRules, at?: string): boolean {
  const verdict = judge(root, path, rules, at);
  return verdict !== undefined && 'reason' in verdict;
}

/** A plain path below the root, none of whose folders is a link. Throws StoreError PATH_UNSAFE. */
function requireInside(root: string, path: string): void {
  const parts = path.split('/');
  const isPlain = parts.every((part) => part !== '' && part !== '.' && part !== '..' && !/[\\\0]/.test(part));
  const folders = parts.slice(0, -1).map((_, i) => join(root, ...parts.slice(0, i + 1)));
  if (isPlain && folders.every(isFolder) && !lstatSync(join(root, path)).isSymbolicLink()) return;
  throw new StoreError('PATH_UNSAFE', 'prune removes only plain paths below the root', { where: path, found: path });
}

function isFolder(path: string): boolean {
  return lstatSync(path).isDirectory();
}

async function rulesFor(root: string, options: PruneOptions): Promise<PruneRules> {
  const { superseded, quarantined, now } = options;
  return { superseded, quarantined, now, registered: await registeredHashes(root) };
}

/** Tree hashes of all artifacts; only translated models are named after them, so that without any none is read. */
async function registeredHashes(root: string): Promise<ReadonlySet<string>> {
  const hasModels = existsSync(portableModelsFolder(root));
  const rows: Listing[] = hasModels ? await listArtifacts(root, { unpinned: true }) : [];
  return new Set(rows.flatMap(({ manifest }) => manifest?.integrity.tree_v2 ?? []));
}

/** Paths that a rule may be about, sorted. Links are never among them. */
function candidates(root: string, note: (path: string, error: unknown) => void): string[] {
  const found: string[] = [];
  const visit = (path: string, depth: number): void => {
    for (const name of entriesOf(root, path, depth > 1, note)) {
      if (depth === 1) found.push(`${path}/${name}`);
      else if (path !== 'artifacts' || !NO_MODELS.has(name)) visit(`${path}/${name}`, depth - 1);
    }
  };
  for (const path of ['artifacts', 'portable']) visit(path, 3);
  for (const path of FLAT) visit(path, 1);
  return found.sort();
}

const NO_MODELS = new Set(['.staging', '.locks', 'quarantine', 'rejected']);
const FLAT = [
  'artifacts/.staging',
  'artifacts/quarantine',
  'verified/artifacts',
  'verified/checkpoints',
  'verified/portable',
];

function entriesOf(root: string, path: string, foldersOnly: boolean, note: (path: string, error: unknown) => void) {
  try {
    if (!lstatSync(join(root, path)).isDirectory()) return [];
    return readdirSync(join(root, path), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() || (!foldersOnly && entry.isFile()))
      .map((entry) => entry.name);
  } catch (error) {
    note(path, error);
    return [];
  }
}
