import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { send } from './client.js';

/** A server in a process of its own, started as a user does. */
export interface Running {
  readonly url: string;
  readonly child: ChildProcess;
  /** What it logged so far. */
  log(): string;
  /** Its exit code, once it has ended. */
  readonly ended: Promise<number | null>;
}

/** Starts `laya-artifacts serve` on a free port and waits until it is ready; throws what it wrote when it ends before. */
export async function startCli(args: readonly string[], env: Record<string, string>): Promise<Running> {
  const command = ['bin/laya-artifacts.js', 'serve', '--port', '0', ...args];
  const child = spawn(process.execPath, command, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const address = once(child.stdout.setEncoding('utf8'), 'data').then(([text]) => String(text).trim());
  const url = await Promise.race([address, ended.then(() => Promise.reject(new Error(log)))]);
  while ((await send(url, '/ready')).status !== 200) await new Promise(setImmediate);
  return { url, child, ended, log: () => log };
}
