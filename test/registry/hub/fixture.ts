import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { TransportOptions } from '../../../registry/hub/transport.js';

/** A clock that never waits; `waits` is what it was asked to wait. */
export function quickClock(): Pick<TransportOptions, 'clock'> & { readonly waits: number[] } {
  const waits: number[] = [];
  const sleep = async (ms: number) => {
    waits.push(ms);
  };
  return { clock: { now: () => Date.now(), sleep }, waits };
}

/** An error that a promise must reject with. */
export function failure(promise: Promise<unknown>): Promise<Error & Record<string, unknown>> {
  return promise.then(
    () => Promise.reject(new Error('nothing was thrown')),
    (error) => error,
  );
}

export async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'hub-'));
  try {
    await run(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Everything below a folder: files with their text, links with "-> target". */
export async function contents(folder: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    if (entry.isSymbolicLink()) found[relative(folder, path)] = `-> ${await readlink(path)}`;
    else if (entry.isFile()) found[relative(folder, path)] = await readFile(path, 'utf8');
  }
  return found;
}
