import { describe, expect, it } from '@jest/globals';
import { percentiles } from '../../../pipeline/benchmark/measure.js';
import { plot } from '../../../pipeline/benchmark/plot.js';

const measured = (length: number, questions: number, p50: number) => ({
  length,
  questions,
  iterations: 9,
  graph: 'L64',
  routing_reason: 'cpu_requested',
  p50_ms: p50,
  p90_ms: p50 * 1.2,
  p99_ms: p50 * 2,
  mean_ms: p50,
  questions_per_second: 1000 / p50,
});

describe('the picture of a benchmark', () => {
  it('has a bar and a line for each measurement, inside the picture', () => {
    const svg = plot('a <model> & more', [measured(64, 1, 5), measured(64, 8, 30), measured(128, 1, 9)]);
    expect(svg.match(/<rect [^>]*fill="#(2f6f9f|d98032)"\/>/g)).toHaveLength(3 + 2);
    expect(svg).toContain('a &lt;model> &amp; more');
    const numbers = [...svg.matchAll(/ (?:x|y|width|height|x1|x2|y1|y2)="([^"]+)"/g)].map(([, one]) => Number(one));
    expect(numbers.every((one) => one >= 0 && one <= 760)).toBe(true);
  });

  it('takes percentiles by the nearest rank', () => {
    const values = Array.from({ length: 100 }, (_, i) => 100 - i);
    expect(percentiles(values)).toEqual({ p50_ms: 50, p90_ms: 90, p99_ms: 99 });
    expect(percentiles([7])).toEqual({ p50_ms: 7, p90_ms: 7, p99_ms: 7 });
  });
});
