import type { Executable } from '../../runtime/executor.js';
import type { LoadProbe } from '../../runtime/probe/load-probe.js';
import type { Platform } from '../../schemas/generated/types.js';
import type { Context } from '../events.js';
import type { CompilerIdentity } from '../tools/compiler.js';

/** Where each operation ran, counted per device; `transitions` are changes of device in program order. */
export interface PlacementReport {
  readonly compute_units: 'PORTABLE_CPU' | 'CPU_AND_NE';
  readonly ops: Readonly<Record<string, number>>;
  readonly transitions: number;
  /** Operations of the program by name. */
  readonly operations: Readonly<Record<string, number>>;
  /** Share of the known cost by device; absent where no cost is known. */
  readonly cost_share?: Readonly<Record<string, number>>;
  /** Operations that only hold values; they are not in `ops`. */
  readonly constants?: number;
  /** Operations that don't run on the Neural Engine, by name. */
  readonly off_ane?: Readonly<Record<string, number>>;
  /** Where the loaded model really ran, by its time; Apple's alone. */
  readonly load_probe?: LoadProbe & { readonly max_ratio: number };
}

/** Who executed: goes into the manifest's evidence. */
export interface ExecutorIdentity {
  readonly name: string;
  readonly version: string;
  readonly precision: Readonly<Record<string, string>>;
}

/**
 * What the stages ask of a platform. `portable` implements it with mlmodelc-export and ONNX Runtime on any system,
 * `apple` with laya-probe on a Mac; nothing above this seam knows which one it has.
 */
export interface Toolchain {
  readonly kind: 'portable' | 'apple';
  /** True when a verdict holds for the path it was measured at: Core ML compiles for each path (fault B03). */
  readonly isPathBound: boolean;
  /** Asked for once it is ready. */
  readonly executor: ExecutorIdentity;
  /** Fails within the first second when a tool is neither there nor installable. */
  preflight(context: Context): Promise<void>;
  /** Installs what is missing to compile, and makes ready. */
  prepare(context: Context): Promise<void>;
  /** Makes ready what the gates need: comes before `placement`, `open`, `platform` and `executor`. */
  ready(context: Context): Promise<void>;
  /** Compiles a package to a `.mlmodelc` tree at `target`, which must not exist. */
  compile(packagePath: string, target: string, temp: string, context: Context): Promise<CompilerIdentity>;
  /** Runs the model on the inputs and reports where each operation ran. */
  placement(
    model: string,
    inputs: Record<string, Float32Array>,
    temp: string,
    signal?: AbortSignal,
  ): Promise<PlacementReport>;
  open(model: string, signal?: AbortSignal): Promise<Executable>;
  /** The profile under which this machine's evidence counts. */
  platform(coremltools: string): Platform;
}
