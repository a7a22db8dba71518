import { ComputeUnitMismatchError } from '../../registry/errors.js';
import { HostWeights } from '../../runtime/host.js';
import { isFast, MAX_RATIO } from '../../runtime/probe/load-probe.js';
import type { ErrorFacts } from '../../schemas/errors.js';
import type { Context } from '../events.js';
import type { PlacementReport, Toolchain } from '../toolchain/toolchain.js';
import type { Compiled } from './compile.js';
import type { Resolved } from './resolve.js';

/** A model on this machine that is to be proven: built here, or imported. */
export interface Candidate {
  readonly resolved: Resolved;
  readonly bucket: number;
  /** Absolute path of the `model.mlmodelc` that the gates run on. */
  readonly model: string;
  /** Folder for temporary files of the executor. */
  readonly temp: string;
}

/** A compiled model with the executor's report of where each operation ran. */
export interface Placed {
  readonly compiled: Compiled;
  readonly placement: PlacementReport;
}

/** A refusal by the gate carries its report, for the rejected file. */
export class PlacementRefusal extends ComputeUnitMismatchError {
  readonly placement: PlacementReport;

  constructor(
    code: 'PLACEMENT_REFUSED' | 'LOAD_PROBE_SLOW' | 'COMPUTE_UNITS_MISMATCH',
    message: string,
    placement: PlacementReport,
    facts: Pick<ErrorFacts, 'expected' | 'found'>,
  ) {
    super(code, message, facts);
    this.placement = placement;
  }
}

/** Stage 4: every operation on the one device the evidence is for, without transitions. */
export async function place(compiled: Compiled, context: Context): Promise<Placed> {
  return { compiled, placement: await provePlacement(candidateOf(compiled), context) };
}

export const candidateOf = ({ bucket, converted, model }: Compiled): Candidate => ({
  resolved: converted.resolved,
  bucket,
  model,
  temp: converted.staging.temp,
});

/** The placement gate on its own. Throws PlacementRefusal, and ProbeError where laya-probe could not tell. */
export async function provePlacement(
  { resolved, bucket, model, temp }: Candidate,
  { signal }: Context,
): Promise<PlacementReport> {
  const { order, checkpoint, tokenizer, layoutRows } = resolved;
  const host = await HostWeights.open(checkpoint);
  try {
    const inputs = await host.features(layoutRows.get(bucket)!.row, bucket, tokenizer.pad.id);
    const placement = await order.toolchain.placement(model, { ...inputs }, temp, signal);
    checkPlacement(order.toolchain.kind, placement, `L${bucket}`);
    return placement;
  } finally {
    await host.close();
  }
}

/** What each kind of evidence is about. */
const SUBJECTS = {
  portable: { units: 'PORTABLE_CPU', device: 'cpu' },
  apple: { units: 'CPU_AND_NE', device: 'ane' },
} as const;

/** The gate: the units of the evidence, at least one operation, all of them on its device, no transition; on a Mac the time, too. */
function checkPlacement(kind: Toolchain['kind'], report: PlacementReport, what: string): void {
  const { units, device } = SUBJECTS[kind];
  if (report.compute_units !== units)
    throw new PlacementRefusal('COMPUTE_UNITS_MISMATCH', `${what}: measured on other compute units`, report, {
      expected: units,
      found: report.compute_units,
    });
  const elsewhere = Object.entries(report.ops).filter(([name, count]) => name !== device && count !== 0);
  const here = report.ops[device] ?? 0;
  if (here <= 0 || elsewhere.length > 0 || report.transitions !== 0)
    throw new PlacementRefusal(
      'PLACEMENT_REFUSED',
      `${what}: not every operation runs on ${device}${namesOf(report.off_ane)}`,
      report,
      {
        expected: { device, transitions: 0 },
        found: { ops: report.ops, transitions: report.transitions, ...(report.off_ane && { off_ane: report.off_ane }) },
      },
    );
  if (kind === 'apple') checkSpeed(report, what);
}

/** A compute plan tells what is intended; the time of the loaded model tells where it runs. */
function checkSpeed(report: PlacementReport, what: string): void {
  const { load_probe: probe } = report;
  if (probe && isFast(probe, probe.max_ratio)) return;
  throw new PlacementRefusal('LOAD_PROBE_SLOW', `${what}: the loaded model is no faster than on the CPU`, report, {
    expected: `at most ${probe?.max_ratio ?? MAX_RATIO} of the CPU's time`,
    found: probe ?? 'nothing measured',
  });
}

/** The operators that run elsewhere, the most frequent first. */
function namesOf(operators: PlacementReport['off_ane']): string {
  const sorted = Object.entries(operators ?? {}).sort(([, a], [, b]) => b - a);
  const shown = sorted.slice(0, 8).map(([name, count]) => `${count} ${name}`);
  return shown.length === 0 ? '' : `: ${shown.join(', ')}${sorted.length > shown.length ? ', ...' : ''}`;
}
