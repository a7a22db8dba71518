import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { evidenceKind } from '../../registry/evidence.js';
import { listArtifacts } from '../../registry/list.js';
import { readMarker } from '../../registry/markers.js';
import { locksFolder } from '../../registry/paths.js';
import { processState } from '../../registry/processes.js';
import { isSystemError } from '../../schemas/errors.js';
import type { Context } from '../events.js';
import { isMac } from '../toolchain/here.js';
import { isProbeBuilt } from '../tools/probe.js';
import { type Check, type CheckName, type Machine, runChecks } from './checks.js';

/** What a machine can be used for. */
export const ROLES = ['build-portable', 'build-apple', 'validate', 'run'] as const;
export type Role = (typeof ROLES)[number];

export interface RoleState {
  readonly role: Role;
  /** `not-here`: no machine of this kind can have it. */
  readonly state: 'works' | 'fails' | 'not-here';
  readonly missing: readonly CheckName[];
}

/** A lock that somebody holds, or held. */
interface LockState {
  readonly artifact: string;
  readonly pid: unknown;
  readonly host: unknown;
  readonly since: unknown;
  readonly state: 'alive' | 'dead' | 'unknown';
}

interface RegisteredModel {
  readonly artifact: string;
  readonly evidence: 'portable' | 'apple' | null;
  /** Why it can't be used. */
  readonly problem: string | null;
}

export interface Examination {
  readonly roles: readonly RoleState[];
  readonly checks: readonly Check[];
  readonly locks: readonly LockState[];
  readonly models: readonly RegisteredModel[];
}

const NEEDS: Readonly<Record<Role, readonly CheckName[]>> = {
  'build-portable': ['node', 'python', 'compiler', 'tools_cache', 'artifact_root'],
  'build-apple': ['macos', 'node', 'python', 'xcode', 'swift', 'laya_probe', 'tools_cache', 'artifact_root'],
  validate: ['macos', 'node', 'xcode', 'swift', 'laya_probe', 'tools_cache', 'artifact_root'],
  run: ['node', 'artifact_root'],
};
/** Needed as long as laya-probe has yet to be built. */
const TO_BUILD_PROBE: readonly CheckName[] = ['xcode', 'swift'];
const APPLE: readonly Role[] = ['build-apple', 'validate'];
const ORDER: readonly CheckName[] = [
  'node',
  'python',
  'compiler',
  'tools_cache',
  'artifact_root',
  'macos',
  'xcode',
  'swift',
  'laya_probe',
];

/** Looks at this machine for the given roles. Nothing is installed or written. */
export async function examine(roles: readonly Role[], context: Context, machine: Machine): Promise<Examination> {
  const possible = roles.filter((role) => isMac(machine) || !APPLE.includes(role));
  const skipped = isMac(machine) && (await isProbeBuilt(context)) ? TO_BUILD_PROBE : [];
  const names = ORDER.filter((name) => possible.some((role) => NEEDS[role].includes(name)) && !skipped.includes(name));
  const [system, checks, models] = await Promise.all([
    runChecks(['system'], context, machine),
    runChecks(names, context, machine),
    registeredModels(context.root),
  ]);
  const failed = checks.filter(({ state }) => state === 'missing').map(({ check }) => check);
  return {
    roles: roles.map((role) => stateOf(role, possible.includes(role), failed)),
    checks: [...system, ...checks],
    locks: lockStates(context.root),
    models,
  };
}

function stateOf(role: Role, isPossible: boolean, failed: readonly CheckName[]): RoleState {
  if (!isPossible) return { role, state: 'not-here', missing: ['system'] };
  const missing = failed.filter((name) => NEEDS[role].includes(name));
  return { role, state: missing.length === 0 ? 'works' : 'fails', missing };
}

async function registeredModels(root: string): Promise<RegisteredModel[]> {
  return (await listArtifacts(root)).map(({ path, manifest, problem }) => ({
    artifact: path,
    evidence: manifest ? evidenceKind(manifest) : null,
    problem: problem?.code ?? null,
  }));
}

function lockStates(root: string): LockState[] {
  const folder = locksFolder(root);
  return namesIn(folder).flatMap((name) => {
    if (!name.endsWith('.lock.d')) return [];
    const artifact = name.slice(0, -'.lock.d'.length);
    const { pid, host, since } = readMarker(join(folder, `${artifact}.lock.holder.json`)) ?? {};
    return [{ artifact, pid, host, since, state: processState(pid, host) }];
  });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if (isSystemError(error)) return [];
    throw error;
  }
}
