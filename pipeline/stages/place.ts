import { ComputeUnitMismatchError } from '../../registry/errors.js';
import { HostWeights } from '../../runtime/host.js';
import type { Context } from '../events.js';
import type { PlacementReport } from '../toolchain/toolchain.js';
import type { Compiled } from './compile.js';

/** A compiled model with the executor's report of where each operation ran. */
export interface Placed {
  readonly compiled: Compiled;
  readonly placement: PlacementReport;
}

/** Stage 4: every operation on the one device the evidence is for, without transitions. */
export async function place(compiled: Compiled, _context: Context): Promise<Placed> {
  const { bucket, converted, model } = compiled;
  const { order, checkpoint, tokenizer, layoutRows } = converted.resolved;
  const host = await HostWeights.open(checkpoint);
  try {
    const inputs = await host.features(layoutRows.get(bucket)!.row, bucket, tokenizer.pad.id);
    const placement = await order.toolchain.placement(model, { ...inputs }, converted.staging.temp);
    checkPlacement(placement, bucket);
    return { compiled, placement };
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
