import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../registry/package-root.js';
import { EnvironmentError } from '../errors.js';
import type { Context } from '../events.js';
import { runProgram } from '../process.js';
import { exists, installOnce } from './install.js';

/**
 * A locked group of Python packages: `convert` makes artifacts, `reference` records goldens, `peer` is for benchmarks,
 * `peer-store` for tests with laya-apple's own code.
 */
export type PythonGroup = 'convert' | 'reference' | 'peer' | 'peer-store';

/** An installed environment: its interpreter and the lock it was made from. */
export interface PythonEnvironment {
  readonly python: string;
  readonly lock: string;
}

const LOCKS: Record<PythonGroup, string> = {
  convert: 'python-convert/requirements.lock',
  reference: 'python-convert/reference/requirements.lock',
  peer: 'bench/requirements-peer.lock',
  'peer-store': 'test/peer/requirements.lock',
};
const CANDIDATES = ['python3', 'python3.13', 'python3.12', 'python3.11'];
const PROBE = 'import sys, venv, ensurepip; print(sys.version_info[0], sys.version_info[1], sys.executable)';

/** Where a group is, or would be, installed: keyed by its lock's digest. */
export async function environmentFolder(group: PythonGroup, tools: string): Promise<string> {
  const digest = createHash('sha256').update(await readFile(join(packageRoot(), LOCKS[group])));
  return join(tools, `python-${group}-${digest.digest('hex').slice(0, 12)}`);
}

/**
 * What a group is, or would be, run with. Throws EnvironmentError PYTHON_MISSING at once when it is neither installed nor
 * installable.
 */
export async function checkPython(group: PythonGroup, context: Context): Promise<string> {
  const folder = await environmentFolder(group, context.tools);
  return (await exists(folder))
    ? `installed in ${folder}`
    : `installed on first use, with ${await findPython(context)}`;
}

/** The group's environment, installed from its hash lock on first use. */
export async function ensurePython(group: PythonGroup, context: Context): Promise<PythonEnvironment> {
  const lock = join(packageRoot(), LOCKS[group]);
  const folder = await installOnce(
    await environmentFolder(group, context.tools),
    `Python ${group} environment`,
    context,
    (partial) => fillEnvironment(group, lock, partial, context),
  );
  return { python: join(folder, 'bin', 'python'), lock };
}

async function fillEnvironment(group: PythonGroup, lock: string, folder: string, context: Context): Promise<void> {
  const tool = `Python ${group} environment`;
  const base = await findPython(context);
  context.emit({ kind: 'tool_install', tool, detail: 'creating it' });
  await installStep(tool, base, ['-I', '-m', 'venv', folder], context);
  const pip = ['-I', '-m', 'pip', 'install', '--no-input', '--disable-pip-version-check', '--no-deps'];
  const exact = ['--require-hashes', '--only-binary', ':all:', '-r', lock];
  await installStep(tool, join(folder, 'bin', 'python'), [...pip, ...exact], context);
}

async function installStep(tool: string, file: string, args: string[], context: Context): Promise<void> {
  const onLine = (line: string): void => {
    const detail = /^\s*(Collecting|Downloading|Installing|Successfully)\s+(.*)/.exec(line);
    if (detail) context.emit({ kind: 'tool_install', tool, detail: `${detail[1]} ${detail[2]}`.slice(0, 100) });
  };
  const result = await runProgram(file, args, {
    env: pipEnvironment(context),
    cwd: '/',
    signal: context.signal,
    onLine,
  });
  if (result.exitCode === 0) return;
  throw new EnvironmentError('TOOL_INSTALL', `${tool} can't be installed`, {
    found: result.stderrTail.slice(-600) || `exit ${result.exitCode ?? result.killedBy}`,
    hint: 'is the Python package index reachable? run the command again',
  });
}

/** The caller's settings for pip (index, proxy, certificates) hold; what could shadow modules does not. */
export function pipEnvironment({ env }: Context): Record<string, string | undefined> {
  const kept = Object.entries(env).filter(([name]) => !name.startsWith('PYTHON') && name !== 'PIP_REQUIRE_VIRTUALENV');
  return { ...Object.fromEntries(kept), LC_ALL: 'C.UTF-8' };
}

/** The first interpreter of a supported version that can make environments. */
async function findPython(context: Context): Promise<string> {
  const named = context.env.LAYA_PYTHON || undefined;
  const found: string[] = [];
  for (const candidate of named ? [named] : CANDIDATES) {
    const options = { env: pipEnvironment(context), cwd: '/', signal: context.signal };
    const result = await runProgram(candidate, ['-I', '-B', '-c', PROBE], options);
    const [major, minor, path] = result.stdout.trim().split(' ');
    if (result.exitCode !== 0 || !path) continue;
    if (major === '3' && Number(minor) >= 11 && Number(minor) <= 13) return path;
    found.push(`${candidate} is ${major}.${minor}`);
  }
  throw new EnvironmentError('PYTHON_MISSING', 'Python 3.11, 3.12 or 3.13 (with venv) is needed to convert', {
    expected: '3.11 - 3.13',
    found: found.length > 0 ? found : 'none on PATH',
    hint: 'install one, or name it: LAYA_PYTHON=/path/to/python3.12',
  });
}
