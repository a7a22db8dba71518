import { randomBytes } from 'node:crypto';
import { access, mkdir, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isSystemError, LayaError } from '../../schemas/errors.js';
import { EnvironmentError } from '../errors.js';
import type { Context } from '../events.js';

/**
 * Gives the folder of a tool, installing it on first use. The folder's name holds the key of what is
 * in it (a lock's digest, a version), it is filled under a private name and appears by one rename, so
 * a folder that is there is complete. `fill` gets the private folder.
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
  try {
    await mkdir(dirname(folder), { recursive: true });
    await fill(partial);
    await publish(partial, folder);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw asInstallError(error, tool, folder);
  }
  context.emit({ kind: 'tool_ready', tool, seconds: (performance.now() - started) / 1000 });
  return folder;
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
