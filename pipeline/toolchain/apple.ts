import { sha256File } from '../../registry/sha256.js';
import type { Executable } from '../../runtime/executor.js';
import { openProbe, type ProbeModel, type ProbePatience } from '../../runtime/probe/client.js';
import { probeCompile, probeDevice, probePlan, probeVersion } from '../../runtime/probe/commands.js';
import { ProbeError, REPORTED_CODES } from '../../runtime/probe/errors.js';
import { MAX_RATIO, timeAgainstCpu } from '../../runtime/probe/load-probe.js';
import type { ComputeUnits } from '../../runtime/probe/records.js';
import type { DeviceReport, PlanReport } from '../../runtime/probe/reports.js';
import type { Platform } from '../../schemas/generated/types.js';
import { CompileError, EnvironmentError } from '../errors.js';
import type { Context } from '../events.js';
import type { CompilerIdentity } from '../tools/compiler.js';
import { BUILT_PROBE, type ProbeSource, type UsableProbe } from '../tools/probe.js';
import type { ExecutorIdentity, PlacementReport, Toolchain } from './toolchain.js';

export interface AppleSettings {
  /** Largest ratio of the load-time probe; default 0.8. */
  readonly maxRatio?: number;
  /** Default: built from this release's sources. */
  readonly probe?: ProbeSource;
  /** Milliseconds; `command` bounds a compilation and a plan. */
  readonly patience?: Partial<ProbePatience> & { readonly command?: number };
}

/** The units that evidence is measured on, by Core ML's name and by the manifest's. */
const UNITS: ComputeUnits = 'cpuAndNeuralEngine';
const COMPUTE_UNITS = 'CPU_AND_NE';
/** As compiled. Core ML does not tell what it computes in. */
const PRECISION = { compute: 'float16', weights: 'float16', io: 'float16' } as const;

/** This Mac and its laya-probe, as they were found. */
interface Machine {
  readonly probe: UsableProbe;
  readonly device: DeviceReport;
  readonly executor: ExecutorIdentity;
  readonly compiler: CompilerIdentity;
}

/** Compiles, plans and predicts with Core ML, through laya-probe, on the Neural Engine of this Mac. */
export function appleToolchain(settings: AppleSettings = {}): Toolchain {
  const { probe: source = BUILT_PROBE, maxRatio = MAX_RATIO, patience = {} } = settings;
  let machine: Machine | undefined;
  const here = (): Machine => {
    if (machine) return machine;
    throw new Error('the apple toolchain was asked before it was ready');
  };
  const ready = async (context: Context): Promise<void> => {
    machine ??= await describeMachine(await source.ensure(context), context);
  };
  const command = (signal?: AbortSignal) => {
    const { command: limit } = patience;
    return { ...here().probe, ...(signal && { signal }), ...(limit === undefined ? {} : { patience: limit }) };
  };
  const open = (model: string, units: ComputeUnits, signal?: AbortSignal): Promise<ProbeModel> =>
    openModel({ ...here().probe, models: [model], units, patience, ...(signal && { signal }) });
  return {
    kind: 'apple',
    isPathBound: true,
    get executor() {
      return here().executor;
    },
    preflight: (context) => source.check(context),
    prepare: ready,
    ready,
    compile: async (packagePath, target, _temp, { signal }) => {
      await probeCompile(command(signal), packagePath, target).catch(explainCompile);
      return here().compiler;
    },
    placement: async (model, inputs, _temp, signal) => {
      const report = placementOf(await probePlan(command(signal), model, UNITS));
      if (!isAllOnAne(report)) return report;
      const times = await using(open(model, UNITS, signal), (ane) =>
        using(open(model, 'cpuOnly', signal), (cpu) => timeAgainstCpu({ ane, cpu }, inputs, signal)),
      );
      return { ...report, load_probe: { ...times, max_ratio: maxRatio } };
    },
    open: async (model, signal) => boundTo(await open(model, UNITS, signal), signal),
    platform: (coremltools) => platformOf(here().device, coremltools),
  };
}

async function openModel(options: Parameters<typeof openProbe>[0]): Promise<ProbeModel> {
  return (await openProbe(options)).models[0]!;
}

async function using<T>(opening: Promise<ProbeModel>, work: (model: ProbeModel) => Promise<T>): Promise<T> {
  const model = await opening;
  try {
    return await work(model);
  } finally {
    await model.release();
  }
}

/** A prediction that is stopped does not keep the command waiting. */
function boundTo(model: ProbeModel, signal?: AbortSignal): Executable {
  return { run: (inputs) => model.run(inputs, signal), release: () => model.release() };
}

/** Throws EnvironmentError TOOLCHAIN_UNAVAILABLE for a machine whose evidence would be nobody's. */
async function describeMachine(probe: UsableProbe, { signal }: Context): Promise<Machine> {
  const { coreMl } = await probeVersion({ ...probe, signal });
  const device = await probeDevice({ ...probe, signal });
  const { architecture, soc, system, computeDevices } = device;
  const kinds = computeDevices.map(({ kind }) => kind);
  if (architecture !== 'arm64' || soc === null || !kinds.includes('ane'))
    throw new EnvironmentError('TOOLCHAIN_UNAVAILABLE', 'this machine has no Neural Engine that Core ML can use', {
      where: probe.executable,
      expected: 'arm64, a named SoC, a device of kind ane',
      found: { architecture, soc, devices: kinds },
      hint: 'use a Mac with Apple silicon that is no virtual machine, or add --toolchain portable',
    });
  const build = system.build === null ? '' : ` (${system.build})`;
  const version = `${system.name} ${system.version}${build}`;
  // What is simulated is never called Core ML.
  const name = coreMl === 'apple' ? 'coreml' : coreMl;
  const executable_sha256 = await sha256File(probe.executable);
  return {
    probe,
    device,
    executor: { name, version, precision: PRECISION },
    compiler: { name, version, kind: 'apple', executable_sha256 },
  };
}

function platformOf({ soc, system }: DeviceReport, coremltools: string): Platform {
  const build = system.build === null ? {} : { macos_build: system.build };
  return { soc: soc!, macos: system.version, ...build, coremltools };
}

/** A plan as a report: the three devices always, others when they occur. */
function placementOf({ operations, devices, cost, constants, transitions, offAne }: PlanReport): PlacementReport {
  const names: Record<string, number> = {};
  for (const { operator } of operations) names[operator] = (names[operator] ?? 0) + 1;
  const total = Object.values(cost).reduce((sum, one) => sum + one, 0);
  const shares = Object.entries(cost).map(([device, one]) => [device, one / total]);
  return {
    compute_units: COMPUTE_UNITS,
    ops: { ane: 0, cpu: 0, gpu: 0, ...devices },
    transitions,
    operations: names,
    constants,
    off_ane: offAne,
    ...(total > 0 ? { cost_share: Object.fromEntries(shares) } : {}),
  };
}

const isAllOnAne = ({ ops, transitions }: PlacementReport): boolean =>
  transitions === 0 && Object.entries(ops).every(([device, count]) => device === 'ane' || count === 0);

/** What the probe reports of a package is the package's fault; how the process fared is not. */
function explainCompile(error: unknown): never {
  if (!(error instanceof ProbeError) || !REPORTED_CODES.some((code) => code === error.code)) throw error;
  throw new CompileError('COMPILE_FAILED', `Core ML refused the package: ${error.message}`, {
    found: error.code,
    ...(error.where === undefined ? {} : { where: error.where }),
    cause: error,
  });
}
