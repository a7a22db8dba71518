import { join } from 'node:path';
import { sha256File } from '../../registry/sha256.js';
import { EnvironmentError } from '../errors.js';
import type { Context } from '../events.js';
import { runProgram } from '../process.js';
import { exists, installOnce } from './install.js';

const CRATE = 'mlmodelc-export';
const VERSION = '0.1.0';
const RUST = [1, 93] as const;

/** Who compiled: goes into the manifest. */
export interface CompilerIdentity {
  readonly name: string;
  readonly version: string;
  readonly kind: 'portable' | 'apple';
  readonly executable_sha256: string;
}

export interface Compiler {
  readonly executable: string;
  readonly identity: CompilerIdentity;
}

/** Where the compiler is, or would be, installed. */
export const compilerFolder = (tools: string): string => join(tools, `${CRATE}-${VERSION}`);

/** Where it is, or what it would be built with. Throws EnvironmentError RUST_MISSING at once when neither can be. */
export async function checkCompiler(context: Context): Promise<string> {
  const folder = compilerFolder(context.tools);
  return (await exists(folder)) ? `installed in ${folder}` : `built on first use, with ${await checkRust(context)}`;
}

/** The portable compiler, built by cargo with the crate's own lock on first use. */
export async function ensureCompiler(context: Context): Promise<Compiler> {
  const folder = await installOnce(compilerFolder(context.tools), CRATE, context, (partial) =>
    fillCompiler(partial, context),
  );
  const executable = join(folder, 'bin', CRATE);
  const identity = { name: CRATE, version: VERSION, kind: 'portable' } as const;
  return { executable, identity: { ...identity, executable_sha256: await sha256File(executable) } };
}

async function fillCompiler(folder: string, context: Context): Promise<void> {
  await checkRust(context);
  context.emit({ kind: 'tool_install', tool: CRATE, detail: 'building it with cargo' });
  const onLine = (line: string): void => {
    const step = /^\s*(Downloading|Downloaded|Compiling|Installing)\s+(.*)/.exec(line);
    if (step) context.emit({ kind: 'tool_install', tool: CRATE, detail: `${step[1]} ${step[2]}`.slice(0, 100) });
  };
  const args = ['install', CRATE, '--version', VERSION, '--locked', '--no-track', '--root', folder];
  const result = await runProgram('cargo', args, { ...cargoOptions(context), onLine });
  if (result.exitCode === 0) return;
  throw new EnvironmentError('TOOL_INSTALL', `${CRATE} ${VERSION} can't be built`, {
    found: result.stderrTail.slice(-600) || `exit ${result.exitCode ?? result.killedBy}`,
    hint: 'is the crate registry reachable? run the command again',
  });
}

async function checkRust(context: Context): Promise<string> {
  const result = await runProgram('cargo', ['--version'], cargoOptions(context));
  const version = /^cargo (\d+)\.(\d+)\./.exec(result.stdout);
  const [major, minor] = [Number(version?.[1] ?? 0), Number(version?.[2] ?? 0)];
  if (result.exitCode === 0 && (major > RUST[0] || (major === RUST[0] && minor >= RUST[1])))
    return result.stdout.trim();
  throw new EnvironmentError('RUST_MISSING', `Rust ${RUST.join('.')} or newer is needed to build the compiler`, {
    expected: `cargo ${RUST.join('.')} or newer`,
    found: version ? result.stdout.trim() : 'no cargo on PATH',
    hint: 'install Rust with rustup, then run the command again',
  });
}

function cargoOptions({ env, signal }: Context) {
  return { env: { ...env, LC_ALL: 'C.UTF-8', CARGO_TERM_COLOR: 'never' }, cwd: '/', signal };
}
