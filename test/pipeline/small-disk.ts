import { spawnSync } from 'node:child_process';

/** Runs a shell script that may mount file systems of its own; `at` is its $1. Needs root, or user namespaces. */
export function inOwnMounts(script: string, at: string): { status: number | null; output: string } {
  const own = process.getuid?.() === 0 ? ['unshare', '-m'] : ['unshare', '-rm'];
  const { status, stdout, stderr } = spawnSync(own[0]!, [...own.slice(1), 'bash', '-c', script, 'bash', at], {
    encoding: 'utf8',
  });
  return { status, output: stdout + stderr };
}
