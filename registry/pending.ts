import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { StoreError } from './errors.js';
import { readMarker } from './markers.js';
import { MANIFEST } from './paths.js';
import { type ProcessState, processState } from './processes.js';

/** Marks a first install whose gates run at the registered path, its manifest withheld (protocol §3.6, S5). */
export const PENDING = 'PENDING.json';

/** Who installs there, and whether that process still runs. */
export interface PendingInstall {
  readonly pid: unknown;
  readonly since: unknown;
  readonly state: ProcessState;
}

/** The install in progress, or left behind, in a folder; undefined when it is published or none. */
export function pendingInstall(folder: string): PendingInstall | undefined {
  const marker = readMarker(join(folder, PENDING));
  if (marker === undefined || existsSync(join(folder, MANIFEST))) return undefined;
  const { pid, since, host } = marker;
  return { pid, since, state: processState(pid, host) };
}

/** Throws StoreError TARGET_OCCUPIED while another process installs in the folder, or may do so. */
export function refusePending(folder: string): void {
  const pending = pendingInstall(folder);
  if (pending === undefined || pending.state === 'dead' || pending.pid === process.pid) return;
  throw new StoreError('TARGET_OCCUPIED', `process ${pending.pid} is installing an artifact there`, {
    where: folder,
    found: { pid: pending.pid, since: pending.since },
    hint: 'wait until it has ended, then run the command again',
  });
}
