import { createInterface } from 'node:readline';
import { EnvironmentError } from './errors.js';

export interface RunOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly signal: AbortSignal;
  /** Called with each line of stdout, and of stderr where said. */
  readonly onLine?: (line: string, stream: 'stdout' | 'stderr') => void;
}

export interface RunResult {
  readonly exitCode: number | null;
  readonly killedBy: string | null;
  readonly stdout: string;
  /** The last lines of stderr, for messages. */
  readonly stderrTail: string;
}

const TAIL = 4000;
const GRACE_MS = 2000;

/**
 * Runs a program to its end in a process group of its own, with exactly the given environment and
 * no stdin. When the signal aborts, the whole group is ended (SIGTERM, then SIGKILL) and the signal's
 * reason is thrown (fault B17). Arguments arrive byte for byte or are refused (fault B18).
 */
export async function runProgram(file: string, args: readonly string[], options: RunOptions): Promise<RunResult> {
  options.signal.throwIfAborted();
  for (const value of [file, ...args])
    if (typeof value !== 'string' || value.includes('\0') || !value.isWellFormed())
      throw new EnvironmentError('TOOL_ARGUMENT', `an argument of ${file} can't be passed to a program`, {
        found: value,
      });
  const { $ } = await import('zx');
  const env = Object.fromEntries(Object.entries(options.env).filter(([, value]) => value !== undefined));
  const shell = $({
    env: env as NodeJS.ProcessEnv,
    cwd: options.cwd,
    detached: true,
    nothrow: true,
    quiet: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const child = shell`exec ${[file, ...args]}`;
  let tail = '';
  for (const stream of ['stdout', 'stderr'] as const)
    createInterface({ input: child[stream], crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
      if (stream === 'stderr') tail = `${tail}${line}\n`.slice(-TAIL);
      options.onLine?.(line, stream);
    });
  const stop = stopGroupOnAbort(child.pid, options.signal);
  try {
    const output = await child;
    options.signal.throwIfAborted();
    return { exitCode: output.exitCode, killedBy: output.signal, stdout: output.stdout, stderrTail: tail.trim() };
  } finally {
    stop();
  }
}

/** Ends the group when the signal aborts; returns the function that stops watching. */
function stopGroupOnAbort(pid: number | undefined, signal: AbortSignal): () => void {
  if (pid === undefined) return () => undefined;
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    endGroup(pid, 'SIGTERM');
    timer = setTimeout(() => endGroup(pid, 'SIGKILL'), GRACE_MS);
  };
  const onExit = (): void => endGroup(pid, 'SIGKILL');
  signal.addEventListener('abort', onAbort, { once: true });
  process.once('exit', onExit);
  return () => {
    signal.removeEventListener('abort', onAbort);
    process.removeListener('exit', onExit);
    if (timer) clearTimeout(timer);
    if (signal.aborted) endGroup(pid, 'SIGKILL');
  };
}

function endGroup(pid: number, name: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(-pid, name);
  } catch {
    // The group is gone already.
  }
}
