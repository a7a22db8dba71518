import { existsSync, lstatSync } from 'node:fs';
import { join } from 'node:path';
import { readTextSync } from '../schemas/door.js';
import { isSystemError } from '../schemas/errors.js';
import { readMarker } from './markers.js';
import { MODELS } from './models.js';
import { ARTIFACT_NAME, parseName } from './names.js';
import { artifactsFolder, BUILDING, MANIFEST } from './paths.js';
import { pendingInstall } from './pending.js';
import { type ProcessState, processState } from './processes.js';

/** Why an entry may go (protocol §9.1). */
export type PruneReason =
  | 'abandoned-staging'
  | 'failed-copy'
  | 'replaced-copy'
  | 'unpublished-install'
  | 'interrupted-prune'
  | 'unused-stamp'
  | 'unused-portable-model'
  | 'quarantined'
  | 'superseded';

export interface PruneRules {
  readonly superseded: boolean;
  readonly quarantined: boolean;
  readonly now: Date;
  /** Tree hashes v2 of the registered artifacts. */
  readonly registered: ReadonlySet<string>;
}

/** `kept` names what is never removed though nobody uses it: a copy that may be the only good one. */
export type Verdict = { readonly reason: PruneReason } | { readonly kept: string } | undefined;

const HOUR_MS = 3600_000;
/** Without a word about a process, so long without a change means that nobody works there. */
const SILENT_MS = 7 * 24 * HOUR_MS;

/**
 * Judges one entry by its path below the root and by what is in it now; undefined for what is in use or none of
 * prune's business. `at` is where the entry stands while it is claimed. Throws system errors for what can't be read.
 */
export function judge(root: string, path: string, rules: PruneRules, at: string = join(root, path)): Verdict {
  const parts = path.split('/');
  const name = parseName(parts.at(-1)!);
  const under = parts.slice(0, -1).join('/');
  if (name.kind === 'pruning') return judgeClaimed(under, name.base, name.pid, at, rules);
  if (under === 'artifacts/.staging') return isAbandoned(at, rules) ? { reason: 'abandoned-staging' } : undefined;
  if (under === 'artifacts/quarantine') return rules.quarantined ? { reason: 'quarantined' } : undefined;
  if (under === 'verified/artifacts') return judgeStamp(root, name.base, at, rules);
  if (under === 'verified/checkpoints') return judgeCheckpointStamp(name.base, at, rules);
  if (under === 'verified/portable') return judgePortable(name.base, at, rules);
  if (parts.length === 4 && PLACES[parts[0]!]) return judgeArtifact(parts as ArtifactParts, at, rules);
  return undefined;
}

type ArtifactParts = [base: string, model: string, revision: string, name: string];

/** Names of what is registered in `<base>/<model>/<revision>/`. */
const PLACES: Readonly<Record<string, RegExp>> = { artifacts: ARTIFACT_NAME, portable: /^dense-any-fp32$/ };

function judgeArtifact([place, model, revision, folder]: ArtifactParts, at: string, rules: PruneRules): Verdict {
  const { kind, base, pid } = parseName(folder);
  if (!PLACES[place]!.test(base)) return undefined;
  const isDead = processState(pid) === 'dead';
  if (kind === 'failed') return isDead ? { reason: 'failed-copy' } : undefined;
  if (kind === 'old' && existsSync(join(at, MANIFEST))) return { kept: 'a previous artifact that a replacement left' };
  if (kind === 'old') return isDead ? { reason: 'replaced-copy' } : undefined;
  if (pendingInstall(at)) return isAbandonedInstall(at, rules) ? { reason: 'unpublished-install' } : undefined;
  return rules.superseded && isSuperseded(model, revision, base) ? { reason: 'superseded' } : undefined;
}

/** Of a model this release knows: at another revision, or of a bucket that is not offered. Other variants are not ours. */
function isSuperseded(name: string, revision: string, folder: string): boolean {
  const model = MODELS.find((one) => one.name === name);
  if (!model || !/^[0-9a-f]{12}$/.test(revision)) return false;
  if (!model.revision.startsWith(revision)) return true;
  const [, quantization, length] = ARTIFACT_NAME.exec(folder) ?? [];
  return length !== undefined && quantization === undefined && !model.buckets.some((one) => String(one) === length);
}

/** A folder that another prune claimed: its own rule must still hold, and it must not be an artifact. */
function judgeClaimed(under: string, base: string, pid: unknown, at: string, rules: PruneRules): Verdict {
  if (processState(pid) !== 'dead') return undefined;
  if (under === 'artifacts/.staging') return isAbandoned(at, rules) ? { reason: 'interrupted-prune' } : undefined;
  if (existsSync(join(at, MANIFEST)))
    return ARTIFACT_NAME.test(parseName(base).base)
      ? { kept: 'an artifact that an interrupted prune left' }
      : undefined;
  if (pendingInstall(at) && !isAbandonedInstall(at, rules)) return undefined;
  return { reason: 'interrupted-prune' };
}

/** The marker is read before the age: removing it makes the folder young again (fault R07). */
function isAbandoned(at: string, rules: PruneRules): boolean {
  const marker = readMarker(join(at, BUILDING));
  if (marker?.abandoned === true) return true;
  if (marker === undefined) return ageOf(at, rules) > HOUR_MS;
  return isLeft(processState(marker.pid, marker.host), at, rules);
}

function isAbandonedInstall(at: string, rules: PruneRules): boolean {
  const install = pendingInstall(at);
  return install !== undefined && isLeft(install.state, at, rules);
}

const isLeft = (state: ProcessState, at: string, rules: PruneRules): boolean =>
  state !== 'alive' && ageOf(at, rules) > (state === 'dead' ? HOUR_MS : SILENT_MS);

export const ageOf = (at: string, { now }: Pick<PruneRules, 'now'>): number => now.getTime() - lstatSync(at).mtimeMs;

function judgeStamp(root: string, file: string, at: string, rules: PruneRules): Verdict {
  if (file.endsWith('.tmp')) return ageOf(at, rules) > HOUR_MS ? { reason: 'unused-stamp' } : undefined;
  if (!file.endsWith('.json')) return undefined;
  const artifact = join(artifactsFolder(root), file.slice(0, -'.json'.length).replaceAll('__', '/'));
  return existsSync(artifact) ? undefined : { reason: 'unused-stamp' };
}

function judgeCheckpointStamp(file: string, at: string, rules: PruneRules): Verdict {
  if (file.endsWith('.tmp')) return ageOf(at, rules) > HOUR_MS ? { reason: 'unused-stamp' } : undefined;
  if (!file.endsWith('.json')) return undefined;
  const folder = folderOf(at);
  return folder !== undefined && existsSync(folder) ? undefined : { reason: 'unused-stamp' };
}

function folderOf(stamp: string): string | undefined {
  try {
    const { path } = JSON.parse(readTextSync(stamp)) as { path?: unknown };
    return typeof path === 'string' ? path : undefined;
  } catch (error) {
    if (isSystemError(error)) throw error;
    return undefined;
  }
}

/** Young ones may belong to an artifact that is just being loaded. */
function judgePortable(key: string, at: string, rules: PruneRules): Verdict {
  if (rules.registered.has(key) || ageOf(at, rules) <= HOUR_MS) return undefined;
  return { reason: 'unused-portable-model' };
}
