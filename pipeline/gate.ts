import { ArtifactParityError } from '../registry/errors.js';

/** What one row gave and what the reference gave: probabilities after temperature, and of the actions. */
export interface GateRow {
  readonly case: string;
  readonly row: number;
  readonly tokens: number;
  readonly probabilities: readonly number[];
  readonly reference: readonly number[];
  readonly actions: readonly number[];
  readonly referenceActions: readonly number[];
  readonly logits: readonly number[];
  readonly referenceLogits: readonly number[];
}

/** All that the gate looks at. */
export interface GateInput {
  readonly precision: 'float16' | 'float32';
  readonly rows: readonly GateRow[];
  /** Rows of the goldens that fit the bucket; exactly so many must have been compared. */
  readonly expectedRows: number;
  readonly skippedRows: number;
  /** Cases whose token ids or markers differ from the reference's. */
  readonly tokenMismatches: readonly string[];
  readonly repeatIdentical: boolean;
}

/** The gate's record, as it stands in the manifest. */
export interface GateRecord {
  readonly precision: string;
  readonly tolerance: number;
  readonly rows: number;
  readonly skipped_rows: number;
  readonly token_mismatch_cases: number;
  readonly prob_max_abs: number;
  readonly action_prob_max_abs: number;
  readonly logit_max_abs: number;
  readonly hard_mismatches: number;
  readonly near_tie_flips: readonly { case: string; row: number; tokens: number; ref_margin: number }[];
  readonly all_finite: boolean;
  readonly repeat_identical: boolean;
  readonly passed: boolean;
  /** Every reason for which the gate did not pass. */
  readonly failures: readonly string[];
}

/** Largest allowed difference of a probability; fixed before anything was measured, never loosened. */
const TOLERANCE = { float16: 0.02, float32: 1e-4 } as const;
const UNBOUNDED = Number.MAX_VALUE;

/**
 * The parity gate (protocol §6). Every comparison is written so that NaN fails it, and an empty or
 * incomplete set fails before anything is compared (faults B05, B06).
 */
export function parityGate(input: GateInput): GateRecord {
  const tolerance = TOLERANCE[input.precision];
  if (!(tolerance > 0 && tolerance <= 0.02))
    throw new ArtifactParityError('GATE_POISONED', 'the tolerance is not one of the fixed ones', { found: tolerance });
  const measured = input.rows.map(measureRow);
  const flips = measured.filter((row) => row.mismatch);
  const hard = flips.filter((row) => !(row.margin < 2 * tolerance));
  const finite = measured.every((row) => row.finite);
  const record = {
    precision: input.precision,
    tolerance,
    rows: measured.length,
    skipped_rows: input.skippedRows,
    token_mismatch_cases: input.tokenMismatches.length,
    prob_max_abs: largest(measured.map((row) => row.probability)),
    action_prob_max_abs: largest(measured.map((row) => row.action)),
    logit_max_abs: largest(measured.map((row) => row.logit)),
    hard_mismatches: hard.length,
    near_tie_flips: flips.filter((row) => row.margin < 2 * tolerance).map(({ listing }) => listing),
    all_finite: finite,
    repeat_identical: input.repeatIdentical,
  };
  const worst = measured.find((row) => !(row.probability <= tolerance) || !(row.action <= tolerance) || !row.finite);
  const failures = [
    measured.length > 0 ? '' : 'no row was compared',
    measured.length === input.expectedRows ? '' : `${measured.length} rows compared, ${input.expectedRows} expected`,
    record.token_mismatch_cases === 0 ? '' : `token ids differ in: ${input.tokenMismatches.slice(0, 5).join(', ')}`,
    finite ? '' : 'an output is not a finite number',
    worst ? `out of tolerance first in case ${worst.listing.case}, row ${worst.listing.row}` : '',
    hard.length === 0 ? '' : `${hard.length} decisions differ, first in case ${hard[0]!.listing.case}`,
    input.repeatIdentical ? '' : 'a repeated call gave other numbers',
  ].filter((reason) => reason !== '');
  return { ...record, passed: failures.length === 0, failures };
}

function measureRow(row: GateRow) {
  const margin = marginOf(row.reference);
  const listing = { case: row.case, row: row.row, tokens: row.tokens, ref_margin: margin };
  const outputs = [...row.probabilities, ...row.actions, ...row.logits];
  return {
    listing,
    margin,
    probability: distance(row.probabilities, row.reference),
    action: distance(row.actions, row.referenceActions),
    logit: distance(row.logits, row.referenceLogits),
    mismatch: argmax(row.probabilities) !== argmax(row.reference),
    finite: outputs.length > 0 && outputs.every(Number.isFinite),
  };
}

/** Largest difference of two vectors; a differing length, an empty vector or a NaN counts as unbounded. */
function distance(found: readonly number[], expected: readonly number[]): number {
  if (found.length !== expected.length || found.length === 0) return UNBOUNDED;
  return largest(found.map((value, i) => Math.abs(value - expected[i]!)));
}

function largest(values: readonly number[]): number {
  return values.reduce((most, value) => (value <= most ? most : Number.isFinite(value) ? value : UNBOUNDED), 0);
}

/** Index of the largest value, the first of equals; -1 when none is a number. */
function argmax(values: readonly number[]): number {
  let best = -1;
  for (const [i, value] of values.entries())
    if (value > (best < 0 ? Number.NEGATIVE_INFINITY : values[best]!)) best = i;
  return best;
}

/** Distance of the two largest probabilities; 1 where there is one option. */
function marginOf(values: readonly number[]): number {
  const [first = 0, second] = [...values].sort((a, b) => b - a);
  return second === undefined ? 1 : first - second;
}
