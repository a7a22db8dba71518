import { copyFile, mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { probeVersion } from '../../runtime/probe/commands.js';
import { locateProbe, probeSources } from '../../runtime/probe/locate.js';
import type { ProbeProgram } from '../../runtime/probe/process.js';
import type { CoreMlKind } from '../../runtime/probe/records.js';
import { EnvironmentError } from '../errors.js';
import type { Context } from '../events.js';
import { runProgram } from '../process.js';
import { exists, installOnce } from './install.js';

const TOOL = 'laya-probe';
/** Swift's package format that the sources are written in. */
const SWIFT = 6;

/** A laya-probe that can be started, and what may compute in it. */
export interface UsableProbe extends ProbeProgram {
  readonly accept: readonly CoreMlKind[];
}

/** Where an apple toolchain gets its laya-probe from. */
export interface ProbeSource {
  /** Throws EnvironmentError SWIFT_MISSING when it is neither there nor can be built. */
  check(context: Context): Promise<void>;
  /** Gives it, built on first use. */
  ensure(context: Context): Promise<UsableProbe>;
}

/** The only source that commands have: built here from this release's sources, and Core ML must be Apple's. */
export const BUILT_PROBE: ProbeSource = {
  check: async (context) => {
    if (!(await isProbeBuilt(context))) await checkSwift(context);
  },
  ensure: (context) => ensureProbe(context, ['apple']),
};

export const isProbeBuilt = async (context: Pick<Context, 'env' | 'tools'>): Promise<boolean> =>
  (await builtProbe(context)) !== undefined;

/** The laya-probe that was built; undefined when it has yet to be. */
export async function builtProbe({ env, tools }: Pick<Context, 'env' | 'tools'>): Promise<ProbeProgram | undefined> {
  const { folder, executable } = await locateIn(tools, env);
  return (await exists(folder)) ? { executable, env: probeEnvironment(env) } : undefined;
}

/**
 * laya-probe in the tools cache, built by `swift build` on first use; it has to start before it counts as built. Throws
 * EnvironmentError SWIFT_MISSING, PROBE_BUILD_FAILED, TOOL_INSTALL, and ProbeError for one that does not start.
 */
export async function ensureProbe(context: Context, accept: readonly CoreMlKind[]): Promise<UsableProbe> {
  const env = probeEnvironment(context.env);
  const { folder, executable } = await locateIn(context.tools, context.env);
  // No network is needed: the package depends on nothing.
  await installOnce(folder, TOOL, { ...context, offline: false }, async (partial) => {
    const built = join(partial, 'bin', TOOL);
    await buildProbe(partial, built, context);
    await probeVersion({ executable: built, env, accept, signal: context.signal });
  });
  return { executable, env, accept };
}

const probeEnvironment = ({ PATH, HOME, TMPDIR }: Context['env']) => ({ PATH, HOME, TMPDIR, LC_ALL: 'C.UTF-8' });

const locateIn = (tools: string, env: Context['env']) => locateProbe({ ...env, LAYA_ARTIFACTS_TOOLS: tools });

/** Builds in a folder of its own, and keeps the executable alone. */
async function buildProbe(partial: string, executable: string, context: Context): Promise<void> {
  await checkSwift(context);
  context.emit({ kind: 'tool_install', tool: TOOL, detail: 'building it with swift' });
  const scratch = join(partial, 'scratch');
  const lines: string[] = [];
  const onLine = (line: string): void => {
    lines.push(line);
    if (lines.length > 40) lines.shift();
    const step = /^\[\d+\/\d+\] .*/.exec(line);
    if (step) context.emit({ kind: 'tool_install', tool: TOOL, detail: step[0].slice(0, 100) });
  };
  await mkdir(scratch, { recursive: true });
  const where = ['--package-path', probeSources(), '--scratch-path', scratch];
  const args = ['build', '-c', 'release', '--product', TOOL, ...where];
  const run = await runProgram('swift', args, { ...swiftOptions(context), onLine });
  const product = join(scratch, 'release', TOOL);
  if (run.exitCode !== 0 || !(await exists(product)))
    throw new EnvironmentError('PROBE_BUILD_FAILED', "laya-probe can't be built from its sources", {
      where: probeSources(),
      expected: 'scratch/release/laya-probe',
      found: lines.join('\n').slice(-800) || `exit ${run.exitCode ?? run.killedBy}`,
      hint: `run it by hand: swift build -c release --package-path ${probeSources()}`,
    });
  await mkdir(dirname(executable), { recursive: true });
  await copyFile(product, executable);
  await rm(scratch, { recursive: true, force: true });
}

/** The Swift that would build it. Throws EnvironmentError SWIFT_MISSING. */
export async function checkSwift(context: Context): Promise<string> {
  const run = await runProgram('swift', ['--version'], swiftOptions(context));
  const version = swiftVersion(run.stdout);
  if (run.exitCode === 0 && version !== undefined && Number.parseInt(version, 10) >= SWIFT) return version;
  throw new EnvironmentError('SWIFT_MISSING', `Swift ${SWIFT} or newer is needed to build laya-probe`, {
    expected: `swift ${SWIFT} or newer`,
    found: version ?? (run.stderrTail.slice(-300) || 'no swift on PATH'),
    hint: 'xcode-select --install, then run the command again',
  });
}

/** The version in what `swift --version` prints, on macOS and elsewhere. */
export const swiftVersion = (text: string): string | undefined => /Swift version (\d+\.\d+(?:\.\d+)?)/.exec(text)?.[1];

function swiftOptions({ env, signal }: Context) {
  return { env: { ...env, LC_ALL: 'C.UTF-8' }, cwd: '/', signal };
}
