import { expect, test } from '@jest/globals';
import { pythonFloat, pythonJson } from '../../runtime/pyjson.js';
import { fromPlain, parseJson } from '../../schemas/json.js';

// S02: every one of these is printed differently by JSON.stringify(JSON.parse(text)), or would be by a careless port.
test.each([
  ['1.0', '1.0'],
  ['-0', '0'],
  ['-0.0', '-0.0'],
  ['1E5', '100000.0'],
  ['1e-7', '1e-07'],
  ['1e21', '1e+21'],
  ['1e16', '1e+16'],
  ['1e15', '1000000000000000.0'],
  ['123456789012345678', '123456789012345678'],
  ['9007199254740993', '9007199254740993'],
  ['9007199254740993.0', '9007199254740992.0'],
  ['0.0001', '0.0001'],
  ['0.00001', '1e-05'],
  ['1.10', '1.1'],
  ['5e-324', '5e-324'],
  ['1e100', '1e+100'],
  ['1e400', 'Infinity'],
  ['-1e400', '-Infinity'],
  ['[]', '[]'],
  ['{"b":[1,{"a":null}],"a":true}', '{"b": [1, {"a": null}], "a": true}'],
  ['{"10":1,"2":2}', '{"10": 1, "2": 2}'],
  ['"\\u00e9\\u2028\\u007f\\/"', '"\u00e9\u2028\u007f/"'],
  ['"\\u0000\\u001F\\b\\f\\n\\r\\t\\"\\\\"', '"\\u0000\\u001f\\b\\f\\n\\r\\t\\"\\\\"'],
  ['"\\\\ud800 \\ud800 \\n"', '"\\\\ud800 \ud800 \\n"'],
])('prints %s as Python does', (text, printed) => {
  expect(pythonJson(parseJson(text))).toBe(printed);
});

test('prints integers of JavaScript as integers', () => {
  expect(pythonJson(fromPlain([1, -0, 1.5, 2 ** 53, 1e-7]))).toBe('[1, 0, 1.5, 9007199254740992, 1e-07]');
});

test('prints floats that JSON has no number for', () => {
  expect([Number.NaN, -0, 1 / 3].map(pythonFloat)).toEqual(['NaN', '-0.0', '0.3333333333333333']);
});

test('refuses an integer that Python refuses', () => {
  const longest = `-${'9'.repeat(4300)}`;
  expect(pythonJson(parseJson(longest))).toBe(longest);
  expect(() => pythonJson(parseJson(`[${'9'.repeat(4301)}]`))).toThrow(
    expect.objectContaining({ code: 'TEXT_INVALID' }),
  );
});
