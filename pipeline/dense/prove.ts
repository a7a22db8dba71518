import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DENSE_MODEL } from '../../registry/dense.js';
import { ArtifactParityError, ComputeUnitMismatchError } from '../../registry/errors.js';
import { type DenseModel, forwardBatches } from '../../runtime/dense/forward.js';
import { DenseSession } from '../../runtime/dense/session.js';
import { HostWeights } from '../../runtime/host.js';
import type { Context } from '../events.js';
import { parityGate } from '../gate.js';
import { compareRow, type ParityRecord, sameNumbers, tokenMismatches } from '../stages/parity.js';
import type { Resolved } from '../stages/resolve.js';
import type { PlacementReport } from '../toolchain/toolchain.js';

/** Rows that run a second time, as one request, to be the same to the bit. */
const REPEATED = 8;

/** An any-length graph in a folder, with the checkpoint and the references it is to be held against. */
export interface DenseCandidate {
  readonly resolved: Resolved;
  /** Folder with model.onnx and its data. */
  readonly folder: string;
  /** Folder for temporary files. */
  readonly temp: string;
}

/** A refusal by the gate carries its record, for the rejected file. */
export class DenseRefusal extends ArtifactParityError {
  readonly parity: ParityRecord;

  constructor(parity: ParityRecord) {
    const bounds = { prob_max_abs: parity.tolerance, action_prob_max_abs: parity.tolerance, hard_mismatches: 0 };
    super('PARITY_FAILED', `the any-length graph is not the reference's model: ${parity.failures.join('; ')}`, {
      expected: bounds,
      found: Object.fromEntries(Object.keys(bounds).map((name) => [name, parity[name as keyof typeof bounds]])),
    });
    this.parity = parity;
  }
}

/** Runs one row and tells which provider ran each node. Throws ComputeUnitMismatchError PLACEMENT_REFUSED. */
export async function placeDense({ resolved, folder, temp }: DenseCandidate): Promise<PlacementReport> {
  const profile = await mkdtemp(join(temp, 'profile-'));
  try {
    const session = await DenseSession.open(join(folder, DENSE_MODEL), { profilePrefix: join(profile, 'run') });
    try {
      await session.run([resolved.goldens.cases.find((one) => one.rows.length > 0)!.rows[0]!.row]);
      session.endProfiling();
    } finally {
      await session.release();
    }
    const report = reportOf(await readProfile(profile));
    const elsewhere = Object.entries(report.ops).filter(([device]) => device !== 'cpu');
    if (elsewhere.length === 0 && (report.ops.cpu ?? 0) > 0 && report.transitions === 0) return report;
    throw new ComputeUnitMismatchError('PLACEMENT_REFUSED', 'not every node of the any-length graph runs on the cpu', {
      expected: { device: 'cpu', transitions: 0 },
      found: { ops: report.ops, transitions: report.transitions },
    });
  } finally {
    await rm(profile, { recursive: true, force: true });
  }
}

interface NodeEvent {
  readonly cat?: string;
  readonly args?: { readonly op_name?: string; readonly provider?: string };
}

async function readProfile(folder: string): Promise<NodeEvent[]> {
  const [file] = await readdir(folder);
  if (file === undefined) return [];
  return JSON.parse(await readFile(join(folder, file), 'utf8')) as NodeEvent[];
}

function reportOf(events: readonly NodeEvent[]): PlacementReport {
  const ran = events.flatMap(({ cat, args }) => (cat === 'Node' && args?.op_name && args.provider ? [args] : []));
  const devices = ran.map(({ provider }) => (provider === 'CPUExecutionProvider' ? 'cpu' : provider!));
  return {
    compute_units: 'PORTABLE_CPU',
    ops: countOf(devices),
    transitions: devices.filter((device, i) => i > 0 && device !== devices[i - 1]).length,
    operations: countOf(ran.map(({ op_name }) => op_name!).sort()),
  };
}

function countOf(names: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Object.fromEntries(counts);
}

/** The FP32 gate on all golden rows at once, in batches as requests run. Throws DenseRefusal. */
export async function proveDense({ resolved, folder }: DenseCandidate, context: Context): Promise<ParityRecord> {
  const host = await HostWeights.open(resolved.checkpoint);
  try {
    const session = await DenseSession.open(join(folder, DENSE_MODEL));
    const { encoder, agent } = resolved.checkpoint;
    const model = { host, session, maxTokens: agent.maxLen, vocab: encoder.vocab };
    const record = await measureDense(resolved, model, context).finally(() => session.release());
    if (!record.passed) throw new DenseRefusal(record);
    return record;
  } finally {
    await host.close();
  }
}

/** The gate's record, passed or not. */
async function measureDense(resolved: Resolved, model: DenseModel, context: Context): Promise<ParityRecord> {
  const { goldens } = resolved;
  const all = goldens.cases.flatMap((one) => one.rows.map((row, index) => ({ case: one.name, index, row })));
  const inputs = all.map(({ row }) => row.row);
  const check = (): void => context.signal.throwIfAborted();
  const found = await forwardBatches(model, inputs, check);
  const [first, second] = [
    await forwardBatches(model, inputs.slice(0, REPEATED), check),
    await forwardBatches(model, inputs.slice(0, REPEATED), check),
  ];
  const record = parityGate({
    precision: 'float32',
    rows: all.map(({ case: name, index, row }, i) => compareRow(name, index, row, found[i]!, resolved)),
    expectedRows: all.length,
    skippedRows: 0,
    tokenMismatches: await tokenMismatches(resolved),
    repeatIdentical: first.every(
      (row, i) => sameNumbers(row.logits, second[i]!.logits) && sameNumbers(row.actionLogits, second[i]!.actionLogits),
    ),
  });
  return { ...record, reference: goldens.reference, goldens_sha256: goldens.sha256 };
}
