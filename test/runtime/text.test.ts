import { expect, test } from '@jest/globals';
import { excerpt, loneSurrogateAt, pythonStrip } from '../../runtime/text.js';
import { inPython } from './python.js';

test('strips what Python strips, for every character', () => {
  const characters = Array.from(
    { length: 0xd800 },
    (_, unit) => `${String.fromCharCode(unit)}x${String.fromCharCode(unit)}`,
  );
  const wide = ['\u{1f600}', '\ufeff', '\ufffd', '\ud800'].map((character) => `${character}x${character}`);
  const texts = [...characters, ...wide, '', ' ', ' \t\u001c a b \u0085\u3000\n'];
  expect(texts.map(pythonStrip)).toEqual(inPython<string>('x.strip()', texts));
});

test('strips long white space in linear time', () => {
  const space = ' '.repeat(2_000_000);
  expect(pythonStrip(`a${space}b`)).toHaveLength(space.length + 2);
  expect(pythonStrip(`${space}b${space}`)).toBe('b');
});

test.each([
  ['', -1],
  ['a\u{1f600}b', -1],
  ['a\ud83d', 1],
  ['\ude00a', 0],
  ['\u{1f600}\ud83dx', 2],
])('finds the lone surrogate of %j at %i', (text, at) => {
  expect(loneSurrogateAt(text)).toBe(at);
});

test('excerpts fit on a line', () => {
  expect(excerpt(undefined)).toBe('nothing');
  expect(excerpt(['a', null])).toBe('["a",null]');
  expect(excerpt('x'.repeat(1000)).length).toBeLessThan(130);
});
