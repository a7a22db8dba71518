import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from '@jest/globals';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** How a child process ended. */
export interface ChildResult {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Bundles one of the tests' own scripts, with the sources it imports, so that node can run it; gives its path. */
export function bundle(script: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'laya-child-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const out = join(folder, 'child.mjs');
  const banner = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";
  const settings = ['--bundle', '--platform=node', '--format=esm', '--target=node20', '--log-level=error'];
  const args = [join(ROOT, 'test', script), ...settings, `--outfile=${out}`, `--banner:js=${banner}`];
  const { status, stderr } = spawnSync(join(ROOT, 'node_modules', 'esbuild', 'bin', 'esbuild'), args, {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`esbuild: ${stderr}`);
  return out;
}

/** Starts a script in a process of its own. */
export function startChild(script: string, args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  return spawn(process.execPath, [script, ...args], {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

/** Waits until a process has ended and gives all that it wrote. */
export async function ended(child: ChildProcess): Promise<ChildResult> {
  let [stdout, stderr] = ['', ''];
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

/** Waits for a line that a child writes. Throws when the child ends before. */
export async function lineOf(child: ChildProcess, line: string): Promise<void> {
  let text = '';
  return new Promise((resolve, reject) => {
    child.stdout?.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (text.split('\n').includes(line)) resolve();
    });
    child.on('close', () => reject(new Error(`the child ended without ${line}: ${text}`)));
  });
}
