import { describe, expect, it } from '@jest/globals';
import { type GateInput, type GateRow, parityGate } from '../../pipeline/gate.js';

const row = (change: Partial<GateRow> = {}): GateRow => ({
  case: 'one',
  row: 0,
  tokens: 20,
  probabilities: [0.7, 0.3],
  reference: [0.705, 0.295],
  actions: [0.9, 0.1],
  referenceActions: [0.9, 0.1],
  logits: [1, 0],
  referenceLogits: [1.01, 0],
  ...change,
});

const input = (change: Partial<GateInput> = {}): GateInput => ({
  precision: 'float16',
  rows: [row()],
  expectedRows: 1,
  skippedRows: 2,
  tokenMismatches: [],
  repeatIdentical: true,
  ...change,
});

describe('parityGate', () => {
  it('passes a close model and records the figures', () => {
    const record = parityGate(input());
    expect(record.passed).toBe(true);
    expect(record).toMatchObject({ rows: 1, skipped_rows: 2, tolerance: 0.02, hard_mismatches: 0, near_tie_flips: [] });
    expect(record.prob_max_abs).toBeCloseTo(0.005, 12);
  });

  // B05, B06: everything that could disarm a comparison fails it.
  const poisons: [string, Partial<GateInput>][] = [
    ['no rows', { rows: [], expectedRows: 0 }],
    ['fewer rows than the goldens have', { expectedRows: 2 }],
    ['more rows than the goldens have', { expectedRows: 0 }],
    ['a NaN probability', { rows: [row({ probabilities: [Number.NaN, 0.3] })] }],
    ['NaN probabilities only', { rows: [row({ probabilities: [Number.NaN, Number.NaN] })] }],
    ['a NaN action', { rows: [row({ actions: [Number.NaN, 0.1] })] }],
    ['a NaN logit', { rows: [row({ logits: [Number.NaN, 0] })] }],
    ['an infinite logit', { rows: [row({ logits: [Number.POSITIVE_INFINITY, 0] })] }],
    ['a NaN reference', { rows: [row({ reference: [Number.NaN, 0.3] })] }],
    ['a missing probability', { rows: [row({ probabilities: [0.7] })] }],
    ['no probabilities', { rows: [row({ probabilities: [], reference: [] })] }],
    ['no actions', { rows: [row({ actions: [], referenceActions: [] })] }],
    ['a probability out of tolerance', { rows: [row({ probabilities: [0.68, 0.32] })] }],
    ['an action out of tolerance', { rows: [row({ actions: [0.87, 0.13] })] }],
    ['one bad row among good ones', { rows: [row(), row({ probabilities: [0.5, 0.5] })], expectedRows: 2 }],
    ['other token ids', { tokenMismatches: ['one'] }],
    ['a repeat with other numbers', { repeatIdentical: false }],
  ];

  it.each(poisons)('fails on %s', (_name, change) => {
    const record = parityGate(input(change));
    expect(record.passed).toBe(false);
    expect(record.failures.length).toBeGreaterThan(0);
    expect(JSON.parse(JSON.stringify(record))).toEqual(record);
  });

  it('lists a flip inside the near-tie band and does not fail on it', () => {
    const flip = row({ probabilities: [0.495, 0.505], reference: [0.51, 0.49] });
    const record = parityGate(input({ rows: [flip] }));
    expect(record.near_tie_flips).toEqual([{ case: 'one', row: 0, tokens: 20, ref_margin: expect.closeTo(0.02, 9) }]);
    expect(record.passed).toBe(true);
  });

  it('fails on another decision outside the band', () => {
    const record = parityGate(input({ rows: [row({ probabilities: [0.49, 0.51], reference: [0.53, 0.47] })] }));
    expect(record).toMatchObject({ hard_mismatches: 1, passed: false });
  });

  it('holds FP32 to its own tolerance', () => {
    expect(parityGate(input({ precision: 'float32' }))).toMatchObject({ tolerance: 1e-4, passed: false });
  });
});
