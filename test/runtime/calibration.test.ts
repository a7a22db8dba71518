import { describe, expect, test } from '@jest/globals';
import {
  actionFeatures,
  concentration,
  expectedLevel,
  probabilities,
  roundTo4,
  softmax,
  temperatures,
} from '../../runtime/calibration.js';
import { inPython } from './python.js';

const config = (temperature: unknown[], temperatureByOptions: Record<string, unknown> = {}) => ({
  temperature,
  temperatureByOptions,
});

describe('temperatures', () => {
  test('are clamped, and 1 where they are no number', () => {
    const { byType, replaced } = temperatures(config([0.1006, 7, 2.5]));
    expect(byType).toEqual([0.5, 5, 2.5]);
    expect(replaced).toEqual([
      { name: 'temperature[0]', found: 0.1006, applied: 0.5 },
      { name: 'temperature[1]', found: 7, applied: 5 },
    ]);
  });

  test.each([true, false, null, undefined, '2', Number.NaN, Number.POSITIVE_INFINITY, [2], {}])(
    'are 1 in place of %p, and say so',
    (found) => {
      const { byType, byOptions, replaced } = temperatures(config([found, 1, 1], { 'noul:2': found }));
      expect(byType[0]).toBe(1);
      expect(byOptions.get('noul:2')).toBe(1);
      expect(replaced.map(({ name }) => name)).toEqual(['temperature[0]', 'temperature_by_options.noul:2']);
    },
  );

  test('keep odd bucket names to themselves', () => {
    const odd = JSON.parse('{"__proto__":2,"constructor":3}');
    expect([...temperatures(config([1, 1, 1], odd)).byOptions.keys()]).toEqual(['__proto__', 'constructor']);
  });
});

describe('probabilities', () => {
  const buckets = { 'choice:2': 2, 'choice:3-5': 3, 'choice:6-10': 4, 'choice:11+': 0.5, 'score:2': 1.5 };
  const calibration = temperatures(config([1, 1.25, 5], buckets));

  test.each([
    [0, 1, 2],
    [0, 2, 2],
    [0, 3, 3],
    [0, 5, 3],
    [0, 6, 4],
    [0, 10, 4],
    [0, 11, 0.5],
    [0, 32, 0.5],
    [1, 2, 1.5],
    [1, 3, 1.25],
    [2, 2, 5],
  ] as const)('of type %i with %i options use the temperature %d', (qtype, k, temperature) => {
    const logits = Array.from({ length: k }, (_, i) => Math.sin(i) * 3);
    expect(probabilities(logits, qtype, calibration)).toEqual(softmax(logits, temperature));
  });

  test('are float32 numbers that add up to 1', () => {
    for (let k = 1; k < 300; k += 7) {
      const p = softmax(Array.from({ length: k }, (_, i) => Math.cos(i * k) * 8));
      expect(p).toEqual(p.map(Math.fround));
      expect(p.reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 5);
    }
  });

  test('stand extreme logits', () => {
    expect(softmax([1e30, -1e30])).toEqual([1, 0]);
    expect(softmax([-3e38, -3e38])).toEqual([0.5, 0.5]);
  });
});

describe('confidence', () => {
  test('is 1 for one option and for certainty, 0 for none', () => {
    expect(concentration([1])).toBe(1);
    expect(concentration([1, 0, 0])).toBe(1);
    expect(concentration([0.25, 0.25, 0.25, 0.25])).toBe(0);
  });

  test('of a score expects the mean level', () => {
    expect(expectedLevel([0.5, 0.25, 0.25])).toBe(0.75);
  });
});

describe('actionFeatures', () => {
  test('are top1, margin, entropy and the number of options, without temperature', () => {
    const [top1, margin, entropy, count] = actionFeatures([Math.log(1), Math.log(2), Math.log(5)], 3);
    expect(top1).toBeCloseTo(5 / 8, 6);
    expect(margin).toBeCloseTo(3 / 8, 6);
    expect(entropy).toBeCloseTo(0.8194, 4);
    expect(count).toBe(Math.fround(3 / 255));
  });

  test('of one option are those of certainty among two', () => {
    expect(actionFeatures([-7], 1)).toEqual([1, 1, expect.closeTo(0, 9), Math.fround(2 / 255)]);
  });

  test('ignore what comes after the options', () => {
    expect(actionFeatures([1, 2, 9e9], 2)).toEqual(actionFeatures([1, 2], 2));
  });
});

describe('roundTo4', () => {
  test('rounds as Python rounds, ties included', () => {
    const ties = Array.from({ length: 640 }, (_, i) => (i - 320) / 32);
    const near = ties.flatMap((tie) => [tie + Number.EPSILON, tie - Number.EPSILON]);
    const many = Array.from({ length: 20_000 }, (_, i) =>
      Math.fround(Math.abs(Math.sin(i * 1.7)) * (i % 3 === 0 ? 31 : 1)),
    );
    const short = Array.from({ length: 2000 }, (_, i) => i / 100_000 + 0.00005);
    const values = [...ties, ...near, ...many, ...short];
    expect(values.map((value) => roundTo4(value) + 0)).toEqual(inPython<number>('round(float(x), 4) + 0.0', values));
  });
});
