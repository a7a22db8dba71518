import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelSpec } from '../../registry/models.js';
import { packageRoot } from '../../registry/package-root.js';
import { EnvironmentError } from '../errors.js';
import type { Context } from '../events.js';
import { runProgram } from '../process.js';
import { ensurePython, pipEnvironment } from './python.js';

/** Models whose goldens come with the laya-apple package. */
const PUBLISHED = new Set(['laya', 'laya-multilingual', 'laya-typed-decisions']);
const LOCK = 'peer-goldens.lock';

/** True when a model's goldens can be had from the laya-apple package. */
export const hasPeerGoldens = (model: ModelSpec): boolean => PUBLISHED.has(model.name);

/**
 * Fetches the laya-apple wheel by its pinned hash and writes the model's goldens, in this project's form, to `target`.
 * Throws EnvironmentError TOOL_INSTALL when the wheel can't be had.
 */
export async function fetchPeerGoldens(model: ModelSpec, target: string, context: Context): Promise<void> {
  const tool = `goldens of ${model.name}`;
  if (context.offline)
    throw new EnvironmentError('TOOL_INSTALL', `the ${tool} are not in the cache, and offline nothing can be fetched`, {
      where: target,
      hint: 'run the command once without --offline',
    });
  const { python } = await ensurePython('convert', context);
  const root = join(packageRoot(), 'python-convert');
  await mkdir(join(target, '..'), { recursive: true });
  const folder = await mkdtemp(`${target}.partial-`);
  const run = async (args: string[]): Promise<void> => {
    const options = { env: pipEnvironment(context), cwd: folder, signal: context.signal };
    const result = await runProgram(python, ['-I', '-X', 'utf8', ...args], options);
    if (result.exitCode === 0) return;
    throw new EnvironmentError('TOOL_INSTALL', `the ${tool} can't be fetched`, {
      found: result.stderrTail.slice(-600),
      hint: `is the Python package index reachable? or record them: npm run record-goldens -- --model ${model.name}`,
    });
  };
  try {
    context.emit({ kind: 'tool_install', tool, detail: 'from the laya-apple package' });
    const exact = ['--no-deps', '--require-hashes', '--only-binary', ':all:', '-r', join(root, LOCK)];
    await run(['-m', 'pip', 'download', '--no-input', '--disable-pip-version-check', '-q', '-d', folder, ...exact]);
    const wheel = (await readdir(folder)).find((name) => name.endsWith('.whl')) ?? 'no wheel';
    await run([join(root, 'peer_goldens.py'), join(folder, wheel), model.name, model.revision, target]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
