import { constants } from 'node:fs';
import { access, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { checkWritable } from '../../registry/staging.js';
import { probeDevice, probeVersion } from '../../runtime/probe/commands.js';
import { isSystemError, LayaError } from '../../schemas/errors.js';
import { EnvironmentError } from '../errors.js';
import type { Context } from '../events.js';
import { runProgram } from '../process.js';
import { bytesText } from '../text.js';
import type { Host } from '../toolchain/here.js';
import { checkCompiler } from '../tools/compiler.js';
import { builtProbe, checkSwift } from '../tools/probe.js';
import { checkPython } from '../tools/python.js';

/** One thing that was looked at. */
export interface Check {
  readonly check: CheckName;
  readonly state: 'ok' | 'missing';
  readonly found: string;
  /** The command or the change that mends it; null when nothing has to be. */
  readonly fix: string | null;
}

export type CheckName =
  | 'system'
  | 'macos'
  | 'node'
  | 'python'
  | 'compiler'
  | 'tools_cache'
  | 'artifact_root'
  | 'xcode'
  | 'swift'
  | 'laya_probe';

/** A machine as Node tells it, with Node's own version. */
export interface Machine extends Host {
  readonly node: string;
}

/** A step that gives what was found. */
type Look = (context: Context, machine: Machine) => Promise<string>;

/** Milliseconds that one look may take. */
const PATIENCE = 1200;
const NODE = [20, 19] as const;
/** The oldest macOS that artifacts are made for. */
const MACOS = 15;
const MAC_ONLY = 'a Mac with Apple silicon';

/** In the order in which they are told. Those of other systems than this one are left out. */
const LOOKS: Readonly<Record<CheckName, Look>> = {
  system: async (_context, { platform, arch }) => `${platform} ${arch}`,
  macos: macosVersion,
  node: async (_context, { node }) => {
    const [major, minor] = node.split('.').map(Number) as [number, number];
    if (major > NODE[0] || (major === NODE[0] && minor >= NODE[1])) return node;
    throw new EnvironmentError('NODE_UNSUPPORTED', `Node ${NODE.join('.')} or newer is needed`, { found: node });
  },
  python: (context) => checkPython('convert', context),
  compiler: checkCompiler,
  tools_cache: async ({ tools }) => {
    await requireWritable(tools);
    return `${tools}, ${await freeBytes(tools)} free`;
  },
  artifact_root: async ({ root }) => {
    await checkWritable(root);
    await requireWritable(root);
    return `${root}, ${await freeBytes(root)} free`;
  },
  xcode: developerTools,
  swift: async (context) => {
    // Without developer tools the system's `swift` opens a window that asks to install them.
    await developerTools(context);
    return checkSwift(context);
  },
  laya_probe: probeState,
};

const FIXES: Readonly<Record<CheckName, string>> = {
  system: `use ${MAC_ONLY}`,
  macos: `update macOS to ${MACOS} or newer`,
  node: 'install Node 20.19 or newer',
  python: 'install Python 3.11 to 3.13, or name one: LAYA_PYTHON=/path/to/python3.12',
  compiler: 'install Rust with rustup',
  tools_cache: 'make it writable, or set LAYA_ARTIFACTS_TOOLS',
  artifact_root: 'make it writable, or set LAYA_APPLE_CACHE',
  xcode: 'xcode-select --install',
  swift: 'xcode-select --install',
  laya_probe: 'laya-artifacts install-tools',
};

/** Runs looks side by side. Nothing is installed or written, and none takes longer than 1.2 s. */
export async function runChecks(
  names: readonly CheckName[],
  context: Context,
  machine: Machine,
): Promise<readonly Check[]> {
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(PATIENCE)]);
  const checks = await Promise.all(names.map((name) => look(name, { ...context, signal }, machine)));
  context.signal.throwIfAborted();
  return checks;
}

async function look(check: CheckName, context: Context, machine: Machine): Promise<Check> {
  try {
    return { check, state: 'ok', found: await LOOKS[check](context, machine), fix: null };
  } catch (error) {
    if (error instanceof LayaError)
      return { check, state: 'missing', found: foundText(error), fix: error.hint ?? FIXES[check] };
    if (isTimeout(error))
      return { check, state: 'missing', found: `no answer in ${PATIENCE / 1000} s`, fix: FIXES[check] };
    if (isSystemError(error)) return { check, state: 'missing', found: error.message, fix: FIXES[check] };
    throw error;
  }
}

function foundText({ code, message, found }: LayaError): string {
  const shown = typeof found === 'string' ? found : found === undefined ? '' : JSON.stringify(found);
  return `${code}: ${message}${shown === '' ? '' : ` (${shown.slice(0, 200)})`}`;
}

const isTimeout = (error: unknown): boolean => (error as { name?: unknown } | null)?.name === 'TimeoutError';

async function macosVersion({ env, signal }: Context): Promise<string> {
  const run = await runProgram('sw_vers', ['-productVersion'], { env, cwd: '/', signal });
  const version = run.stdout.trim();
  if (run.exitCode === 0 && Number.parseInt(version, 10) >= MACOS) return version;
  throw new EnvironmentError('TOOLCHAIN_UNAVAILABLE', `macOS ${MACOS} or newer is needed`, {
    found: version || 'no version',
  });
}

async function developerTools({ env, signal }: Context): Promise<string> {
  const run = await runProgram('xcode-select', ['-p'], { env, cwd: '/', signal });
  if (run.exitCode === 0) return run.stdout.trim();
  throw new EnvironmentError('SWIFT_MISSING', 'there are no developer tools', { hint: FIXES.xcode });
}

/** What the one that was built says; one that has yet to be built is no fault. */
async function probeState(context: Context): Promise<string> {
  const probe = await builtProbe(context);
  if (!probe) return 'built on first use';
  const options = { ...probe, signal: context.signal, patience: PATIENCE };
  const { version } = await probeVersion(options);
  const { soc, architecture, computeDevices } = await probeDevice(options);
  const kinds = computeDevices.map(({ kind }) => kind);
  if (architecture === 'arm64' && soc !== null && kinds.includes('ane'))
    return `${version}, ${soc}, ${kinds.join(' ')}`;
  throw new EnvironmentError('TOOLCHAIN_UNAVAILABLE', 'Core ML has no Neural Engine here', {
    found: `${soc} ${architecture}, ${kinds.join(' ')}`,
    hint: `use ${MAC_ONLY} that is no virtual machine`,
  });
}

/** The nearest folder that is there must take files. */
async function requireWritable(path: string): Promise<void> {
  await access(await nearest(path), constants.W_OK | constants.X_OK);
}

async function freeBytes(path: string): Promise<string> {
  const { bavail, bsize } = await statfs(await nearest(path));
  return bytesText(bavail * bsize);
}

async function nearest(path: string): Promise<string> {
  try {
    await access(path);
    return path;
  } catch (error) {
    if (!isSystemError(error, 'ENOENT') || dirname(path) === path) throw error;
    return nearest(dirname(path));
  }
}
