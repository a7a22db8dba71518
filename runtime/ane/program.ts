import type { Environment } from '../../registry/paths.js';
import { BackendUnavailableError } from '../errors.js';
import type { ProbePatience } from '../probe/client.js';
import type { CoreMlKind } from '../probe/records.js';
import type { AneProgram } from './session.js';

/** Which laya-probe to start, in full. */
export interface ProbeSettings {
  /** Path of the executable. */
  readonly executable: string;
  /** The whole environment of its process; default: HOME, PATH and TMPDIR. */
  readonly env?: Environment;
  /** What may compute in it; default `apple` only. Anything else is for tests: it is no Neural Engine. */
  readonly accept?: readonly CoreMlKind[];
  readonly patience?: Partial<ProbePatience>;
}

export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly arch: string;
}

/**
 * The laya-probe of this machine: the one that was named, or on a Mac with Apple silicon the one in the tools cache.
 * Whether it is there and runs is not looked at. Throws BackendUnavailableError DEVICE_UNAVAILABLE elsewhere.
 */
export async function findProgram(
  probe: string | ProbeSettings | undefined,
  env: Environment,
  machine: Machine = process,
): Promise<AneProgram> {
  if (probe !== undefined) return programOf(typeof probe === 'string' ? { executable: probe } : probe, env);
  if (machine.platform !== 'darwin' || machine.arch !== 'arm64') {
    throw new BackendUnavailableError('DEVICE_UNAVAILABLE', 'there is no Neural Engine that can be used here', {
      where: 'device',
      expected: 'macOS on Apple silicon',
      found: `${machine.platform} ${machine.arch}`,
      hint: 'use --device cpu',
    });
  }
  const { locateProbe } = await import('../probe/locate.js');
  return programOf({ executable: (await locateProbe(env)).executable }, env);
}

function programOf(
  { executable, env, accept = ['apple'], patience = {} }: ProbeSettings,
  own: Environment,
): AneProgram {
  const { HOME, PATH, TMPDIR } = own;
  return { executable, env: env ?? { HOME, PATH, TMPDIR, LC_ALL: 'C.UTF-8' }, accept, patience };
}
