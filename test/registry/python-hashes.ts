import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('../vectors/tree_hash.py', import.meta.url));

/** What the implementation in Python says of each folder. */
export function pythonHashes(folders: readonly string[]): { v1?: string; v2?: string; error?: string }[] {
  const { status, stdout, stderr } = spawnSync('python3', ['-I', SCRIPT, ...folders], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}
