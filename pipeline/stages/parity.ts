import { ArtifactParityError } from '../../registry/errors.js';
import { probabilities, softmax, temperatures } from '../../runtime/calibration.js';
import { InvalidRequestError } from '../../runtime/errors.js';
import { forwardRow, type RowModel, type RowOutputs } from '../../runtime/forward.js';
import { HostWeights } from '../../runtime/host.js';
import { prepare } from '../../runtime/prompt.js';
import { parseQuestions } from '../../runtime/questions.js';
import type { Context } from '../events.js';
import { type GateRecord, type GateRow, parityGate } from '../gate.js';
import type { GoldenCase, GoldenRow } from '../goldens.js';
import { type Candidate, candidateOf, type Placed } from './place.js';
import type { Resolved } from './resolve.js';

/** The parity record with where its references came from. */
export type ParityRecord = GateRecord & { readonly reference: string; readonly goldens_sha256: string };

/** A placed model whose answers were held against every golden row that fits. */
export interface Proven {
  readonly placed: Placed;
  readonly parity: ParityRecord;
}

/** A refusal by the gate carries its record, for the rejected file. */
export class ParityRefusal extends ArtifactParityError {
  readonly parity: ParityRecord;

  constructor(bucket: number, parity: ParityRecord) {
    super('PARITY_FAILED', `L${bucket} is not the reference's model: ${parity.failures.join('; ')}`, {
      expected: { prob_max_abs: parity.tolerance, action_prob_max_abs: parity.tolerance, hard_mismatches: 0 },
      found: {
        prob_max_abs: parity.prob_max_abs,
        action_prob_max_abs: parity.action_prob_max_abs,
        hard_mismatches: parity.hard_mismatches,
      },
    });
    this.parity = parity;
  }
}

/** Stage 5: the fixed gate on every golden row that fits the bucket, tokens included. */
export async function parity(placed: Placed, context: Context): Promise<Proven> {
  return { placed, parity: await proveParity(candidateOf(placed.compiled), context) };
}

/** The parity gate on its own. Throws ParityRefusal, and ProbeError where laya-probe gave no answers. */
export async function proveParity({ resolved, bucket, model }: Candidate, context: Context): Promise<ParityRecord> {
  const host = await HostWeights.open(resolved.checkpoint);
  try {
    const executable = await resolved.order.toolchain.open(model, context.signal);
    try {
      const rowModel = { host, executable, bucket, padId: resolved.tokenizer.pad.id };
      const record = await measure(resolved, rowModel, context);
      if (!record.passed) throw new ParityRefusal(bucket, record);
      return record;
    } finally {
      await executable.release();
    }
  } finally {
    await host.close();
  }
}

async function measure(resolved: Resolved, model: RowModel, context: Context): Promise<ParityRecord> {
  const { goldens } = resolved;
  const all = goldens.cases.flatMap((one) => one.rows.map((row, index) => ({ case: one.name, index, row })));
  const fitting = all.filter(({ row }) => row.row.ids.length <= model.bucket);
  const rows: GateRow[] = [];
  for (const { case: name, index, row } of fitting) {
    context.signal.throwIfAborted();
    rows.push(compareRow(name, index, row, await forwardRow(model, row.row), resolved));
    if (rows.length % 25 === 0)
      context.emit({ kind: 'progress', label: `parity L${model.bucket}`, done: rows.length, total: fitting.length });
  }
  const record = parityGate({
    precision: 'float16',
    rows,
    expectedRows: fitting.length,
    skippedRows: all.length - fitting.length,
    tokenMismatches: await tokenMismatches(resolved),
    repeatIdentical: await repeats(model, fitting[0]?.row),
  });
  return { ...record, reference: goldens.reference, goldens_sha256: goldens.sha256 };
}

/** A row as the gate compares it: probabilities under the checkpoint's temperatures. */
export function compareRow(
  name: string,
  index: number,
  golden: GoldenRow,
  found: RowOutputs,
  resolved: Resolved,
): GateRow {
  const { row, logits, actionLogits } = golden;
  const scale = temperatures(resolved.checkpoint.agent);
  return {
    case: name,
    row: index,
    tokens: row.ids.length,
    probabilities: probabilities(found.logits, row.qtype, scale),
    reference: probabilities(logits, row.qtype, scale),
    actions: softmax(found.actionLogits),
    referenceActions: softmax(actionLogits),
    logits: found.logits,
    referenceLogits: logits,
  };
}

/** Names of the cases whose prompts come out with other ids or markers, or are refused. */
export async function tokenMismatches({ goldens, checkpoint, tokenizer }: Resolved): Promise<string[]> {
  const differing: string[] = [];
  for (const one of goldens.cases) {
    const prepared = await prepareCase(one, tokenizer, checkpoint.agent);
    if (JSON.stringify(prepared) !== JSON.stringify(one.rows.map(({ row }) => identity(row)))) differing.push(one.name);
  }
  return differing;
}

async function prepareCase(
  one: GoldenCase,
  tokenizer: Resolved['tokenizer'],
  limits: Resolved['checkpoint']['agent'],
): Promise<unknown> {
  try {
    const { rows } = await prepare(tokenizer, limits, one.state, parseQuestions(one.questions));
    return rows.map(identity);
  } catch (error) {
    if (error instanceof InvalidRequestError) return error.code;
    throw error;
  }
}

const identity = ({ ids, markers, qtype }: GoldenRow['row']): unknown => [ids, markers, qtype];

async function repeats(model: RowModel, golden: GoldenRow | undefined): Promise<boolean> {
  if (!golden) return false;
  const [first, second] = [await forwardRow(model, golden.row), await forwardRow(model, golden.row)];
  return sameNumbers(first.logits, second.logits) && sameNumbers(first.actionLogits, second.actionLogits);
}

export const sameNumbers = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((value, i) => Object.is(value, b[i]));
