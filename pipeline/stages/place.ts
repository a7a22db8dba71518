import { ComputeUnitMismatchError } from '../../registry/errors.js';
import { HostWeights } from '../../runtime/host.js';
import type { Context } from '../events.js';
import type { PlacementReport } from '../toolchain/toolchain.js';
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

/** Stage 4: every operation on the one device the evidence is for, without transitions. */
export async function place(compiled: Compiled, _context: Context): Promise<Placed> {
  return { compiled, placement: await provePlacement(candidateOf(compiled)) };
}

export const candidateOf = ({ bucket, converted, model }: Compiled): Candidate => ({
  resolved: converted.resolved,
  bucket,
  model,
  temp: converted.staging.temp,
});

/** The placement gate on its own. Throws ComputeUnitMismatchError PLACEMENT_REFUSED. */
export async function provePlacement({ resolved, bucket, model, temp }: Candidate): Promise<PlacementReport> {
  const { order, checkpoint, tokenizer, layoutRows } = resolved;
  const host = await HostWeights.open(checkpoint);
  try {
    const inputs = await host.features(layoutRows.get(bucket)!.row, bucket, tokenizer.pad.id);
    const placement = await order.toolchain.placement(model, { ...inputs }, temp);
    checkPlacement(placement, bucket);
    return placement;
  } finally {
    await host.close();
  }
}

/** The gate: at least one operation, all of them on the device, no transition. */
function checkPlacement(report: PlacementReport, bucket: number): void {
  const device = report.compute_units === 'CPU_AND_NE' ? 'ane' : 'cpu';
  const elsewhere = Object.entries(report.ops).filter(([name, count]) => name !== device && count !== 0);
  const here = report.ops[device] ?? 0;
  if (here > 0 && elsewhere.length === 0 && report.transitions === 0) return;
  throw new ComputeUnitMismatchError('PLACEMENT_REFUSED', `L${bucket}: not every operation runs on ${device}`, {
    expected: { device, transitions: 0 },
    found: { ops: report.ops, transitions: report.transitions },
  });
}
