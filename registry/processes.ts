import { hostname } from 'node:os';

/** `unknown`: it runs on another host, or what was recorded is no process id. */
export type ProcessState = 'alive' | 'dead' | 'unknown';

/**
 * Whether a recorded process still runs. A record without a host is taken for one of this host, as the Python runtime
 * writes it. A process of another user is alive.
 */
export function processState(pid: unknown, host: unknown = undefined): ProcessState {
  if (host !== undefined && host !== hostname()) return 'unknown';
  if (typeof pid !== 'number' || !Number.isInteger(pid) || pid <= 0 || pid > 0x7fffffff) return 'unknown';
  try {
    process.kill(pid, 0);
    return 'alive';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH' ? 'dead' : 'alive';
  }
}
