import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../registry/package-root.js';
import type { Context } from './events.js';
import { runProgram } from './process.js';

/** This project's version, and the commit of its checkout. */
export interface ProjectFacts {
  readonly projectVersion: string;
  readonly gitRevision: string | null;
}

/** Version from package.json; commit from git where the package is a checkout, "-dirty" with changes in it. */
export async function projectFacts(context: Context): Promise<ProjectFacts> {
  const root = packageRoot();
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
  return {
    projectVersion: version,
    gitRevision: existsSync(join(root, '.git')) ? await commitOf(root, context) : null,
  };
}

async function commitOf(cwd: string, { env, signal }: Context): Promise<string | null> {
  const options = { env: { PATH: env.PATH, HOME: env.HOME, LC_ALL: 'C.UTF-8' }, cwd, signal };
  const head = await runProgram('git', ['rev-parse', 'HEAD'], options);
  if (head.exitCode !== 0) return null;
  const changes = await runProgram('git', ['status', '--porcelain', '--untracked-files=no'], options);
  return `${head.stdout.trim()}${changes.stdout.trim() === '' ? '' : '-dirty'}`;
}
