import { spawn } from 'node:child_process';

/** What a run of the command line gave. */
export interface CliRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A user without rights where the tests run as root, whom no file mode holds up. */
export const ANYBODY = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

/** Runs the built command line as a user does. */
export async function cli(
  args: readonly string[],
  env: Record<string, string> = {},
  input?: string,
  user: { uid?: number; gid?: number } = {},
): Promise<CliRun> {
  const stdio = ['pipe', 'pipe', 'pipe'] as ['pipe', 'pipe', 'pipe'];
  const options = { env: { ...process.env, ...env }, stdio, ...user };
  const child = spawn(process.execPath, ['bin/laya-artifacts.js', ...args], options);
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(input ?? '');
  const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve));
  return { code, stdout, stderr };
}
