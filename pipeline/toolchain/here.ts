import { release } from 'node:os';
import { EnvironmentError, UsageError } from '../errors.js';
import type { Context } from '../events.js';
import { appleToolchain } from './apple.js';
import { portableToolchain } from './portable.js';
import type { Toolchain } from './toolchain.js';

/** Which toolchain a command was asked to use. */
export interface ToolchainOptions {
  readonly toolchain?: Toolchain['kind'];
  /** Bound of the load-time probe, as it was typed. */
  readonly maxRatio?: string;
}

/** A system as Node tells it. */
export interface Host {
  readonly platform: string;
  readonly arch: string;
}

/** A machine that can have a Neural Engine. */
export const isMac = ({ platform, arch }: Host): boolean => platform === 'darwin' && arch === 'arm64';

/**
 * The toolchain of this machine: `apple` on macOS arm64, `portable` elsewhere, unless the options name one. The bound
 * of the load-time probe is the option's, LAYA_PROBE_MAX_RATIO's or 0.8. Throws EnvironmentError TOOLCHAIN_UNAVAILABLE
 * for `apple` elsewhere, UsageError for a bound that is none.
 */
export function hereToolchain(options: ToolchainOptions, { env }: Context, host: Host = process): Toolchain {
  const maxRatio = parseRatio(options.maxRatio ?? env.LAYA_PROBE_MAX_RATIO);
  const kind = options.toolchain ?? (isMac(host) ? 'apple' : 'portable');
  if (kind === 'portable') {
    if (options.maxRatio === undefined) return portableToolchain();
    throw new UsageError('USAGE', 'the portable toolchain has no load-time probe', {
      where: '--max-ratio',
      hint: 'leave it out, or use --toolchain apple on a Mac',
    });
  }
  if (isMac(host)) return appleToolchain(maxRatio === undefined ? {} : { maxRatio });
  throw new EnvironmentError('TOOLCHAIN_UNAVAILABLE', 'the apple toolchain needs a Mac with Apple silicon', {
    where: '--toolchain',
    expected: 'darwin arm64',
    found: `${host.platform} ${host.arch} (${release()})`,
    hint: 'use --toolchain portable, or run the command on a Mac',
  });
}

/** The same, ready for the gates; on a Mac it builds laya-probe on first use. */
export async function readyToolchain(options: ToolchainOptions, context: Context): Promise<Toolchain> {
  const toolchain = hereToolchain(options, context);
  await toolchain.ready(context);
  return toolchain;
}

/** A bound above 0 and below 1: a model that runs on the CPU takes as long as one on the CPU. */
function parseRatio(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  const ratio = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (ratio > 0 && ratio < 1) return ratio;
  throw new UsageError('USAGE', 'the bound of the load-time probe is a number above 0 and below 1', {
    where: '--max-ratio or LAYA_PROBE_MAX_RATIO',
    found: text,
  });
}
