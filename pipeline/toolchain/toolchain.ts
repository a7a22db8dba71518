import type { Executable } from '../../runtime/executor.js';
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
}

/** Who executed: goes into the manifest's evidence. */
export interface ExecutorIdentity {
  readonly name: string;
  readonly version: string;
  readonly precision: Readonly<Record<string, string>>;
}

/**
 * What the stages ask of a platform. `portable` implements it with mlmodelc-export and ONNX Runtime,
 * on any system; nothing above this seam knows which one it has.
 */
export interface Toolchain {
  readonly kind: 'portable' | 'apple';
  readonly executor: ExecutorIdentity;
  /** Fails within the first second when a tool is neither there nor installable. */
  preflight(context: Context): Promise<void>;
  /** Installs what is missing. */
  prepare(context: Context): Promise<void>;
  /** Compiles a package to a `.mlmodelc` tree at `target`, which must not exist. */
  compile(packagePath: string, target: string, temp: string, context: Context): Promise<CompilerIdentity>;
  /** Runs the model once on the inputs and reports where each operation ran. */
  placement(model: string, inputs: Record<string, Float32Array>, temp: string): Promise<PlacementReport>;
  open(model: string): Promise<Executable>;
  /** The profile under which this machine's evidence counts. */
  platform(coremltools: string): Platform;
}
