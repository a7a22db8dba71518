import { describe, expect, test } from '@jest/globals';
import { RecordError } from '../../schemas/errors.js';
import { fromPlain, JsonNumber, type JsonObject, parseJson, stringifyJson, toPlain } from '../../schemas/json.js';

const withCode = (code: string, where?: string) =>
  expect.objectContaining(where === undefined ? { code } : { code, where });

describe('parseJson', () => {
  test('keeps the order of keys, also of number-like ones and __proto__', () => {
    // S01
    const text = '{"10":1,"2":2,"01":3,"__proto__":{"x":4},"1":5,"constructor":6,"":7}';
    const object = parseJson(text) as JsonObject;
    expect([...object.keys()]).toEqual(['10', '2', '01', '__proto__', '1', 'constructor', '']);
    expect(stringifyJson(object)).toBe(text);
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  test('keeps the text of numbers', () => {
    const numbers = ['0', '-0', '1.0', '1e5', '1E+05', '-1.50', '9007199254740993', '1e999', '0.10e-0'];
    expect(stringifyJson(parseJson(`[${numbers}]`))).toBe(`[${numbers}]`);
  });

  test('reads every escape, and lone surrogates', () => {
    expect(parseJson('"\\" \\\\ \\/ \\b\\f\\n\\r\\t \\u00e9\\u2028\\uD83D\\ude00"')).toBe(
      '" \\ / \b\f\n\r\t \u00e9\u2028\u{1f600}',
    );
    expect(parseJson('"\\ud800"')).toBe('\ud800');
  });

  test('reads words, empty containers and white space', () => {
    expect(stringifyJson(parseJson(' \r\n\t[ true , false,null ,{ } , [ ],"" ] \n'))).toBe(
      '[true,false,null,{},[],""]',
    );
  });

  test.each([
    ['', 'line 1, column 1'],
    [' ', 'line 1, column 2'],
    ['{', 'line 1, column 2'],
    ['[1,]', 'line 1, column 4'],
    ['[1\n,\n2 3]', 'line 3, column 3'],
    ['{"a":1,}', 'line 1, column 8'],
    ['{"a" 1}', 'line 1, column 6'],
    ['{a:1}', 'line 1, column 2'],
    ["['a']", 'line 1, column 2'],
    ['01', 'line 1, column 2'],
    ['+1', 'line 1, column 1'],
    ['.5', 'line 1, column 1'],
    ['1.', 'line 1, column 2'],
    ['1e', 'line 1, column 2'],
    ['-', 'line 1, column 1'],
    ['NaN', 'line 1, column 1'],
    ['-Infinity', 'line 1, column 1'],
    ['tru', 'line 1, column 1'],
    ['True', 'line 1, column 1'],
    ['nullx', 'line 1, column 5'],
    ['"a', 'line 1, column 3'],
    ['"\n"', 'line 1, column 2'],
    ['"\\x"', 'line 1, column 3'],
    ['"\\u12g4"', 'line 1, column 3'],
    ['"\\', 'line 1, column 3'],
    ['[1] 2', 'line 1, column 5'],
    ['// c\n1', 'line 1, column 1'],
    ['\ufeff{}', 'line 1, column 1'],
    ['\u00a01', 'line 1, column 1'],
  ])('refuses %j with the place', (text, where) => {
    // R22: a byte order mark is not JSON
    expect(() => parseJson(text)).toThrow(withCode('JSON_SYNTAX', where));
  });

  test('refuses a key that occurs twice, also when spelled differently', () => {
    expect(() => parseJson('{"a":1,\n "\\u0061":2}')).toThrow(withCode('JSON_DUPLICATE_KEY', 'line 2, column 2'));
    expect(() => parseJson('{"__proto__":1,"__proto__":2}')).toThrow(withCode('JSON_DUPLICATE_KEY'));
  });

  test('takes the last of two equal keys at the first one’s place where asked to', () => {
    const object = parseJson('{"a":1,"b":2,"a":3}', { duplicates: 'last' });
    expect(stringifyJson(object)).toBe('{"a":3,"b":2}');
  });

  test.each(['[', '{"a":'])('refuses 100000 levels of %s without running out of stack', (open) => {
    // R22
    expect(() => parseJson(open.repeat(100_000))).toThrow(withCode('JSON_LIMIT'));
    expect(() => parseJson(open.repeat(100_000), { maxDepth: 1e9 })).toThrow(withCode('JSON_LIMIT'));
  });

  test('reads exactly as deep as allowed', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    expect(stringifyJson(parseJson(nested(200)))).toBe(nested(200));
    expect(() => parseJson(nested(201))).toThrow(withCode('JSON_LIMIT', 'line 1, column 201'));
    expect(stringifyJson(parseJson(nested(1000), { maxDepth: 1000 }))).toBe(nested(1000));
    expect(parseJson('1', { maxDepth: 0 })).toEqual(new JsonNumber('1'));
  });

  test('counts bytes, not characters, against the limit', () => {
    expect(parseJson('"\u00e9"', { maxBytes: 4 })).toBe('\u00e9');
    expect(() => parseJson('"\u00e9"', { maxBytes: 3 })).toThrow(withCode('JSON_LIMIT'));
    expect(() => parseJson('"aaaaaaaa"', { maxBytes: 3 })).toThrow(withCode('JSON_LIMIT'));
  });
});

describe('toPlain', () => {
  test('makes objects without a prototype', () => {
    const plain = toPlain(parseJson('{"__proto__":{"polluted":true},"a":[1.5,null]}')) as Record<string, unknown>;
    expect(Object.getPrototypeOf(plain)).toBeNull();
    expect(Object.keys(plain)).toEqual(['__proto__', 'a']);
    expect(plain.a).toEqual([1.5, null]);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test.each([
    ['{"a":[0,9007199254740993]}', '$.a[1]'],
    ['{"a b":1e999}', '$["a b"]'],
    ['-1e400', '$'],
  ])('refuses a number that would change: %s', (text, where) => {
    // R22
    expect(() => toPlain(parseJson(text))).toThrow(withCode('RECORD_INVALID', where));
  });

  test('takes integers up to 2^53 - 1 and any finite float', () => {
    expect(toPlain(parseJson('[9007199254740991,-0,1e300,1e-400]'))).toEqual([9007199254740991, -0, 1e300, 0]);
  });
});

describe('fromPlain', () => {
  test('takes what JSON can say', () => {
    const value = {
      b: [1, 1.5, 1e-7, 1e21, 2 ** 53, -0, 12345678901234567890n],
      a: new Map([
        ['2', true],
        ['1', false],
      ]),
      n: null,
    };
    expect(stringifyJson(fromPlain(value))).toBe(
      '{"b":[1,1.5,1e-7,1e+21,9007199254740992,0,12345678901234567890],"a":{"2":true,"1":false},"n":null}',
    );
    expect(fromPlain(new JsonNumber('1.0'))).toEqual(new JsonNumber('1.0'));
    expect(stringifyJson(fromPlain(Object.assign(Object.create(null), { x: 1 })))).toBe('{"x":1}');
  });

  test('keeps the order of a Map that was read', () => {
    const value = parseJson('{"10":1.0,"2":[{"b":1,"a":2}]}');
    expect(stringifyJson(fromPlain(value))).toBe('{"10":1.0,"2":[{"b":1,"a":2}]}');
  });

  test.each([
    ['undefined', { a: undefined }, '$.a'],
    ['a function', [() => 1], '$[0]'],
    ['a symbol', Symbol('s'), '$'],
    ['NaN', [[Number.NaN]], '$[0][0]'],
    ['infinity', { 'a-b': Number.POSITIVE_INFINITY }, '$["a-b"]'],
    ['a hole', new Array(3).fill(1, 0, 1), '$[1]'],
    ['a date', new Date(0), '$'],
    ['a set', new Set(), '$'],
    ['a boxed string', { a: new String('x') }, '$.a'],
    ['a Map with a number as key', new Map([[1, 2]]), '$'],
  ])('refuses %s', (_, value, where) => {
    expect(() => fromPlain(value)).toThrow(withCode('RECORD_INVALID', where));
  });

  test('refuses a cycle, but not a value that is used twice', () => {
    const shared = { x: 1 };
    expect(stringifyJson(fromPlain([shared, shared]))).toBe('[{"x":1},{"x":1}]');
    const cyclic: unknown[] = [];
    cyclic.push({ again: cyclic });
    expect(() => fromPlain(cyclic)).toThrow(withCode('RECORD_INVALID', '$[0].again'));
  });

  test('refuses what is nested too deep', () => {
    let value: unknown = 1;
    for (let level = 0; level < 5000; level += 1) value = [value];
    expect(() => fromPlain(value)).toThrow(withCode('JSON_LIMIT'));
  });
});

describe('stringifyJson', () => {
  test('indents, and leaves empty containers on one line', () => {
    const text = '{\n  "b": [\n    1.0,\n    {}\n  ],\n  "a": []\n}';
    expect(stringifyJson(parseJson(text), 2)).toBe(text);
  });

  test('writes text that reads back the same', () => {
    const value = parseJson('["\\ud800","\\u0000\\"\\\\","\\u2028"]');
    expect(parseJson(stringifyJson(value))).toEqual(value);
  });
});

test('errors are RecordErrors', () => {
  expect(() => parseJson('?')).toThrow(RecordError);
});
