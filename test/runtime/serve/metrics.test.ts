import { describe, expect, it } from '@jest/globals';
import { jsonLog } from '../../../runtime/serve/log.js';
import { Metrics } from '../../../runtime/serve/metrics.js';

describe('Metrics', () => {
  it('writes counters, histograms and gauges as Prometheus reads them', () => {
    const metrics = new Metrics();
    metrics.count('a_total', 'As.', { route: '/x' });
    metrics.count('a_total', 'As.', { route: '/x' }, 2);
    metrics.observe('b_seconds', 'Bs.', { m: 'n' }, 0.002);
    metrics.observe('b_seconds', 'Bs.', { m: 'n' }, 99);
    const lines = metrics.text([{ name: 'c', help: 'Cs.', value: 1.5 }]).split('\n');
    expect(lines).toEqual(
      expect.arrayContaining(['# TYPE a_total counter', 'a_total{route="/x"} 3', '# TYPE b_seconds histogram']),
    );
    expect(lines.filter((line) => /le="(0.001|0.0025|30|\+Inf)"/.test(line))).toEqual([
      'b_seconds_bucket{m="n",le="0.001"} 0',
      'b_seconds_bucket{m="n",le="0.0025"} 1',
      'b_seconds_bucket{m="n",le="30"} 1',
      'b_seconds_bucket{m="n",le="+Inf"} 2',
    ]);
    expect(lines).toEqual(expect.arrayContaining(['b_seconds_count{m="n"} 2', '# TYPE c gauge', 'c 1.5']));
    expect(lines.at(-1)).toBe('');
  });
});

describe('jsonLog', () => {
  it('writes one JSON line an event, from its level on', () => {
    const lines: string[] = [];
    const log = jsonLog(
      'warning',
      (line) => lines.push(line),
      () => new Date(0),
    );
    log('info', 'request');
    log('error', 'x', { line: 'a\nb' });
    expect(lines).toEqual(['{"time":"1970-01-01T00:00:00.000Z","level":"error","event":"x","line":"a\\nb"}\n']);
  });

  it('writes nothing when silent', () => {
    const lines: string[] = [];
    jsonLog(
      'silent',
      (line) => lines.push(line),
      () => new Date(0),
    )('error', 'x');
    expect(lines).toEqual([]);
  });
});
