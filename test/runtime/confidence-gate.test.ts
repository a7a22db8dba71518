import { describe, expect, test } from '@jest/globals';
import { gate, parseMinConfidence } from '../../runtime/confidence-gate.js';
import { JsonNumber, parseJson } from '../../schemas/json.js';

const refusal = (where: string) =>
  expect.objectContaining({ name: 'InvalidRequestError', code: 'MIN_CONFIDENCE_INVALID', where });

describe('min_confidence', () => {
  test.each([undefined, null])('may be missing: %p', (value) => {
    expect(parseMinConfidence(value)).toBeUndefined();
  });

  test.each([
    ['0', 0],
    ['-0', 0],
    ['-0.0', -0],
    ['1', 1],
    ['1.0', 1],
    ['0.5', 0.5],
    ['1e-400', 0],
    ['5E-1', 0.5],
  ])('may be a number from 0 to 1: %s', (text, number) => {
    expect(parseMinConfidence(parseJson(text))).toBe(number);
  });

  test('may be a map of option buckets and "default"', () => {
    const map = parseMinConfidence(parseJson('{"choice:3-5":1,"noul:2":0.25,"score:11+":0,"default":0.5}'));
    expect(map).toEqual(
      new Map([
        ['choice:3-5', 1],
        ['noul:2', 0.25],
        ['score:11+', 0],
        ['default', 0.5],
      ]),
    );
  });

  test('may be plain JavaScript', () => {
    expect(parseMinConfidence(0.9)).toBe(0.9);
    expect(parseMinConfidence(new JsonNumber('0.9'))).toBe(0.9);
    expect(parseMinConfidence({ default: 0.9 })).toEqual(new Map([['default', 0.9]]));
  });

  test.each(['true', 'false', '"0.5"', '[0.5]', '-0.1', '1.01', '2', '1e400', '-1e-300', '{}'])(
    'is refused: %s',
    (text) => {
      expect(() => parseMinConfidence(parseJson(text))).toThrow(refusal('min_confidence'));
    },
  );

  test.each([Number.NaN, Number.POSITIVE_INFINITY, 1n << 70n, () => 1, new Date(), { default: Number.NaN }])(
    'is refused with a code when it is no JSON, or too large: %p',
    (value) => {
      expect(() => parseMinConfidence(value)).toThrow(refusal('min_confidence'));
    },
  );

  test.each(['choice:4', 'choice', 'noul', 'Default', 'DEFAULT', '', 'choice:3-5 ', '__proto__', 'constructor'])(
    'is refused with the key %j, which no answer would ever look up',
    (key) => {
      const map = new Map([
        ['default', 0.5],
        [key, 0.5],
      ]);
      expect(() => parseMinConfidence(map)).toThrow(refusal('min_confidence'));
    },
  );

  test.each(['null', 'true', '"0.5"', '2', '-1', '{}', '[0.1]'])('is refused with %s in a map', (value) => {
    expect(() => parseMinConfidence(parseJson(`{"default":0.5,"noul:2":${value}}`))).toThrow(
      refusal('min_confidence["noul:2"]'),
    );
  });
});

describe('the gate', () => {
  test('abstains below the threshold only', () => {
    expect(gate([0.4999], 0, 3, 0.5)).toEqual({
      low_confidence: true,
      abstention: 'abstained',
      abstention_threshold: 0.5,
    });
    expect(gate([0.5], 0, 3, 0.5)).toEqual({ abstention: 'passed', abstention_threshold: 0.5 });
    expect(gate([0], 0, 3, 0)).toEqual({ abstention: 'passed', abstention_threshold: 0 });
    expect(gate([1], 0, 3, 1)).toEqual({ abstention: 'passed', abstention_threshold: 1 });
  });

  test('has its fields in upstream’s order', () => {
    expect(Object.keys(gate([0], 0, 3, 0.5))).toEqual(['low_confidence', 'abstention', 'abstention_threshold']);
  });

  test('judges by the first number there is, and by nothing else', () => {
    expect(gate([Number.NaN, 0.2], 1, 3, 0.5)).toMatchObject({ abstention: 'abstained' });
    expect(gate([0.9, 0.2], 1, 3, 0.5)).toMatchObject({ abstention: 'passed' });
    expect(gate([Number.NaN, Number.POSITIVE_INFINITY], 1, 3, 0.5)).toEqual({
      abstention: 'unevaluated',
      abstention_threshold: 0.5,
    });
  });

  test.each([
    [0, 1, 0.1],
    [0, 2, 0.1],
    [0, 3, 0.2],
    [0, 5, 0.2],
    [0, 6, 0.3],
    [0, 10, 0.3],
    [0, 11, 0.4],
    [0, 32, 0.4],
    [1, 2, 0.9],
    [2, 2, 0.5],
  ] as const)('takes the threshold of type %i with %i options', (qtype, k, threshold) => {
    const map = new Map([
      ['choice:2', 0.1],
      ['choice:3-5', 0.2],
      ['choice:6-10', 0.3],
      ['choice:11+', 0.4],
      ['noul:2', 0.5],
      ['default', 0.9],
    ]);
    expect(gate([1], qtype, k, map).abstention_threshold).toBe(threshold);
  });

  test('lets a bucket pass that the map does not name', () => {
    expect(gate([0], 0, 3, new Map([['noul:2', 1]]))).toEqual({ abstention: 'passed', abstention_threshold: 0 });
  });
});
