import { statfs } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { StoreError } from '../../registry/errors.js';
import { PRECISION } from '../../runtime/mil/precision.js';
import { profileRun } from '../../runtime/mil/profile.js';
import { openMlmodelc } from '../../runtime/mil/session.js';
import type { Platform } from '../../schemas/generated/types.js';
import { CompileError } from '../errors.js';
import type { Context } from '../events.js';
import { runProgram } from '../process.js';
import { type CompilerIdentity, checkCompiler, ensureCompiler } from '../tools/compiler.js';
import type { PlacementReport, Toolchain } from './toolchain.js';

/** Free bytes below which a failed write is the disk's fault, not the package's. */
const FULL = 64 << 10;

/** Compiles with mlmodelc-export and executes with ONNX Runtime on the CPU, on any system. */
export function portableToolchain(): Toolchain {
  return {
    kind: 'portable',
    isPathBound: false,
    executor: { name: 'onnxruntime', version: executorVersion(), precision: PRECISION },
    preflight: async (context) => {
      await checkCompiler(context);
    },
    prepare: async (context) => {
      await ensureCompiler(context);
    },
    ready: async () => undefined,
    compile,
    placement,
    open: (model) => openMlmodelc(model, {}),
    platform: portablePlatform,
  };
}

async function compile(source: string, target: string, temp: string, context: Context): Promise<CompilerIdentity> {
  const { executable, identity } = await ensureCompiler(context);
  const env = { PATH: context.env.PATH, HOME: temp, TMPDIR: temp, LC_ALL: 'C.UTF-8' };
  const run = await runProgram(executable, [source, target], { env, cwd: temp, signal: context.signal });
  if (run.exitCode === 0) return identity;
  const { bavail, bsize } = await statfs(temp);
  if (bavail * bsize < FULL) throw new StoreError('DISK_FULL', 'no space left while compiling', { where: target });
  throw new CompileError('COMPILE_FAILED', `${identity.name} refused the package`, {
    where: source,
    found: run.stderrTail.slice(-600) || `exit ${run.exitCode ?? run.killedBy}`,
  });
}

async function placement(model: string, inputs: Record<string, Float32Array>, temp: string): Promise<PlacementReport> {
  const { devices, transitions, operations } = await profileRun(model, inputs, { temp });
  return { compute_units: 'PORTABLE_CPU', ops: devices, transitions, operations };
}

/** Portable evidence has no machine: the same bytes give the same answers on any. */
function portablePlatform(coremltools: string): Platform {
  return { soc: 'portable', macos: 'none', coremltools };
}

function executorVersion(): string {
  const manifest = createRequire(import.meta.url)('onnxruntime-node/package.json') as { version: string };
  return manifest.version;
}
