import { describe, expect, it } from '@jest/globals';
import { findModel } from '../../registry/models.js';
import type { OpenedArtifact } from '../../registry/read.js';
import { planRequest, type Runnable } from '../../runtime/plan.js';
import type { PreparedRow } from '../../runtime/prompt.js';
import { codeOf } from '../workspace.js';

const spec = findModel('laya');
const row = (tokens: number, options = 2): PreparedRow => ({
  ids: new Array<number>(tokens).fill(1),
  markers: Array.from({ length: options }, (_, i) => i),
  qtype: 0,
  stateTokens: 1,
  stateTokensDropped: 0,
  headTokensDropped: 0,
  truncated: false,
  collapsedOptions: null,
});
const model = (change: Partial<Runnable> = {}): Runnable => ({
  spec,
  artifacts: new Map([64, 96, 128].map((bucket) => [bucket, {} as OpenedArtifact])),
  graph: 'auto',
  hasDense: true,
  deviceReason: 'cpu_requested',
  ...change,
});

describe('the plan of a request', () => {
  it('takes the smallest bucket for a single row, with the device’s reason', () => {
    expect(planRequest([row(65)], model())).toEqual({ graph: 'bc1s-masked', buckets: [96], reason: 'cpu_requested' });
    expect(planRequest([], model())).toEqual({ graph: 'none', buckets: [], reason: 'no_questions' });
  });

  it('takes the any-length graph for what fits no bucket, and for several questions, and says why', () => {
    const reasonOf = (rows: PreparedRow[], change: Partial<Runnable> = {}) => {
      const { graph, buckets, reason } = planRequest(rows, model(change));
      expect([graph, buckets]).toEqual(['dense-any', []]);
      return reason;
    };
    expect(reasonOf([row(10), row(10)])).toBe('multiple_questions');
    expect(reasonOf([row(129)])).toBe('sequence_exceeds_buckets');
    expect(reasonOf([row(120, 33)])).toBe('options_exceed_graph');
    expect(reasonOf([row(10)], { artifacts: new Map() })).toBe('bucket_artifact_unavailable');
    expect(reasonOf([row(10)], { graph: 'any-length' })).toBe('any_length_requested');
  });

  // S19: what was asked for is not replaced by something else.
  it('never takes it in place of the bucket artifacts that were asked for', async () => {
    const buckets = model({ graph: 'buckets' });
    expect(planRequest([row(10), row(100)], buckets).buckets).toEqual([64, 128]);
    expect(await codeOf(() => planRequest([row(129)], buckets))).toBe('ROW_TOO_LONG');
    const few = model({ graph: 'buckets', artifacts: new Map([[64, {} as OpenedArtifact]]) });
    expect(await codeOf(() => planRequest([row(100)], few))).toBe('ARTIFACT_MISSING');
    expect(await codeOf(() => planRequest([row(129)], model({ hasDense: false })))).toBe('ROW_TOO_LONG');
  });
});
