import { randomBytes } from 'node:crypto';
import { access, mkdir, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import lockfile from 'proper-lockfile';
import { isSystemError, LayaError } from '../../schemas/errors.js';
import { EnvironmentError } from '../errors.js';
import type { Context } from '../events.js';

const STALE_MS = 30_000;
const POLL_MS = 250;
const PATIENCE_MS = 60 * 60_000;

/**
 * Gives the folder of a tool, installing it on first use. The folder's name holds the key of what is
 * in it (a lock's digest, a version), it is filled under a private name and appears by one rename, so
 * a folder that is there is complete. `fill` gets the private folder. Installers of one tool take turns.
 */
export async function installOnce(
  folder: string,
  tool: string,
  context: Context,
  fill: (partial: string) => Promise<void>,
): Promise<string> {
  if (await exists(folder)) return folder;
  if (context.offline)
    throw new EnvironmentError('TOOL_INSTALL', `${tool} is not installed, and offline nothing can be installed`, {
      where: folder,
      hint: 'run the command once without --offline',
    });
  const started = performance.now();
  const partial = `${folder}.partial-${process.pid}-${randomBytes(4).toString('hex')}`;
  let unlock: (() => Promise<void>) | undefined;
  try {
    await mkdir(dirname(folder), { recursive: true });
    unlock = await takeTurn(folder, tool, context);
    if (await exists(folder)) return folder;
    await fill(partial);
    await publish(partial, folder);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw asInstallError(error, tool, folder);
  } finally {
    await unlock?.();
  }
  context.emit({ kind: 'tool_ready', tool, seconds: (performance.now() - started) / 1000 });
  return folder;
}

/**
 * Waits for whoever installs the same tool; gives what ends the turn. It saves work and nothing more: after an hour, or
 * when the lock is lost, the rename decides.
 */
async function takeTurn(folder: string, tool: string, { signal, emit }: Context): Promise<() => Promise<void>> {
  const options = { realpath: false, lockfilePath: `${folder}.lock`, stale: STALE_MS, onCompromised: () => undefined };
  for (let waited = 0; waited < PATIENCE_MS; waited += POLL_MS) {
    try {
      const release = await lockfile.lock(folder, options);
      return () => release().catch(() => undefined);
    } catch (error) {
      if (!isSystemError(error, 'ELOCKED')) throw error;
    }
    if (waited === 0) emit({ kind: 'waiting', what: tool, holder: 'another process' });
    await pause(POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
  return async () => undefined;
}

/** Of two installers the first one's folder stays; the other's is the same and goes. */
async function publish(partial: string, folder: string): Promise<void> {
  try {
    await rename(partial, folder);
  } catch (error) {
    if (!isSystemError(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    await rm(partial, { recursive: true, force: true });
  }
}

function asInstallError(error: unknown, tool: string, where: string): unknown {
  if (error instanceof LayaError || !isSystemError(error)) return error;
  return new EnvironmentError('TOOL_INSTALL', `${tool} can't be installed: ${error.message}`, {
    where,
    hint: 'free space or set LAYA_ARTIFACTS_TOOLS to a folder that can be written',
    cause: error,
  });
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
