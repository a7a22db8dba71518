import { describe, expect, it } from '@jest/globals';
import { findModel } from '../../registry/models.js';
import type { OpenedArtifact } from '../../registry/read.js';
import type { AneAbsence } from '../../runtime/ane/device.js';
import { type DeviceLoad, planRequest, type Runnable } from '../../runtime/plan.js';
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
const artifacts = (...buckets: number[]) => new Map(buckets.map((bucket) => [bucket, {} as OpenedArtifact]));
const load = (length: number, rate: number | null): DeviceLoad => ({
  length,
  backlogMs: length * 100 * (rate ?? 0),
  estimate: (size) => (rate === null ? null : size * rate),
});
const idle = load(0, null);
const model = (change: Partial<Runnable> = {}): Runnable => ({
  spec,
  device: 'cpu',
  artifacts: artifacts(64, 96, 128),
  graph: 'auto',
  hasDense: true,
  ane: { absence: 'ane_runtime_unavailable', artifacts: artifacts() },
  loads: { cpu: idle, ane: idle },
  ...change,
});
/** Of a Mac: the Neural Engine serves these buckets. */
const mac = (change: Partial<Runnable> = {}, ...buckets: number[]): Runnable =>
  model({
    device: 'auto',
    ane: { absence: null, artifacts: buckets.length > 0 ? artifacts(...buckets) : artifacts(64, 96, 128) },
    ...change,
  });
const chosen = (rows: PreparedRow[], runnable: Runnable): string => {
  const { device, deviceReason, reason, graph, buckets } = planRequest(rows, runnable);
  if (device === 'ane' || (runnable.device === 'auto' && runnable.ane.absence === null))
    expect(reason).toBe(deviceReason);
  return [device, deviceReason, graph, ...buckets].join(' ');
};

describe('the plan of a request', () => {
  it('takes the any-length graph on the cpu, with the device’s reason for what a bucket would have held', () => {
    expect(planRequest([row(65)], model())).toEqual({
      device: 'cpu',
      deviceReason: 'cpu_requested',
      graph: 'dense-any',
      buckets: [],
      reason: 'cpu_requested',
    });
  });

  it('takes the smallest bucket for each row where there is no such graph', () => {
    expect(planRequest([row(65)], model({ hasDense: false }))).toEqual({
      device: 'cpu',
      deviceReason: 'cpu_requested',
      graph: 'bc1s-masked',
      buckets: [96],
      reason: 'cpu_requested',
    });
    for (const device of ['auto', 'cpu', 'ane'] as const) {
      expect(planRequest([], mac({ device }))).toMatchObject({ device: 'none', graph: 'none', reason: 'no_questions' });
    }
  });

  it('says why no bucket could have answered at once', () => {
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

describe('the device of a request', () => {
  it('is the one that was asked for, with all its rows', () => {
    const two = [row(10), row(100)];
    expect(chosen(two, mac({ device: 'ane' }))).toBe('ane ane_requested bc1s-masked 64 128');
    expect(chosen(two, mac({ device: 'cpu', graph: 'buckets' }))).toBe('cpu cpu_requested bc1s-masked 64 128');
  });

  it('is the Neural Engine for one question that fits one of its buckets', () => {
    const short = 'ane validated_short_single_question_path bc1s-masked';
    expect(chosen([row(10)], mac())).toBe(`${short} 64`);
    expect(chosen([row(128, 32)], mac())).toBe(`${short} 128`);
    expect(chosen([row(10)], mac({ graph: 'buckets' }))).toBe(`${short} 64`);
    expect(chosen([row(10)], mac({}, 96))).toBe(`${short} 96`);
  });

  it('is the cpu for any other, and tells why', () => {
    expect(chosen([row(10), row(10)], mac())).toBe('cpu multiple_questions dense-any');
    expect(chosen([row(10), row(10)], mac({ hasDense: false }))).toBe('cpu multiple_questions bc1s-masked 64 64');
    expect(chosen([row(129)], mac())).toBe('cpu sequence_exceeds_ane_auto_range dense-any');
    expect(chosen([row(100, 33)], mac())).toBe('cpu options_exceed_graph dense-any');
    expect(chosen([row(65)], mac({}, 64))).toBe('cpu ane_artifact_unavailable dense-any');
    expect(chosen([row(10)], mac({ graph: 'any-length' }))).toBe('cpu any_length_requested dense-any');
  });

  it('is the cpu while the Neural Engine does not serve, with that as the reason', () => {
    const absences = ['ane_runtime_unavailable', 'ane_artifact_unavailable', 'platform_not_validated', 'ane_starting'];
    for (const absence of absences as AneAbsence[]) {
      const absent = mac({ ane: { absence, artifacts: artifacts(64) } });
      expect(chosen([row(10)], absent)).toBe(`cpu ${absence} dense-any`);
      expect(planRequest([row(10), row(10)], absent)).toMatchObject({
        deviceReason: absence,
        reason: 'multiple_questions',
      });
    }
  });

  it('is the Neural Engine for everything where nothing of the cpu is registered', () => {
    const bare = mac({ hasDense: false, artifacts: artifacts() });
    expect(chosen([row(10), row(100)], bare)).toBe('ane cpu_artifact_unavailable bc1s-masked 64 128');
  });

  it('is the one that is done earlier when its own is busy and both were measured', () => {
    const short = [row(10)];
    const at = (cpu: DeviceLoad, ane: DeviceLoad) => mac({ loads: { cpu, ane } });
    expect(chosen(short, at(load(0, 2), load(3, 1)))).toBe('cpu ane_backlog_shorter_on_cpu dense-any');
    expect(chosen(short, at(load(3, 2), load(3, 1)))).toMatch(/^ane validated_short/);
    expect(chosen(short, at(load(0, 0.1), load(0, 1)))).toMatch(/^ane validated_short/);
    expect(chosen(short, at(load(0, null), load(3, 1)))).toMatch(/^ane validated_short/);
  });

  it('may be the Neural Engine for a bucket that auto does not offer, while the cpu is busy', () => {
    const multilingual = findModel('laya-multilingual');
    const busy = (cpu: DeviceLoad) => mac({ spec: multilingual, loads: { cpu, ane: load(0, 1) } }, 64, 256);
    const soon = 'ane cpu_backlog_shorter_on_ane bc1s-masked 256';
    expect(chosen([row(200)], busy(load(5, 1)))).toBe(soon);
    expect(chosen([row(200)], busy(load(0, 1)))).toBe('cpu sequence_exceeds_ane_auto_range dense-any');
    expect(chosen([row(300)], busy(load(5, 1)))).toBe('cpu sequence_exceeds_ane_auto_range dense-any');
    expect(chosen([row(200), row(200)], busy(load(5, 1)))).toBe('cpu multiple_questions dense-any');
  });
});
