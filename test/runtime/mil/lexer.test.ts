import { describe, expect, test } from '@jest/globals';
import { Lexer, parseHexFloat } from '../../../runtime/mil/lexer.js';
import { codeOf } from '../../workspace.js';

describe('parseHexFloat', () => {
  test.each([
    ['0x1p+0', 1],
    ['-0x1p+0', -1],
    ['0x1.8p-3', 0.1875],
    ['0x1.5p-17', 1.00135803e-5],
    ['0x1p-24', 2 ** -24],
    ['0x1.ff8p-15', 1023 * 2 ** -24],
    ['0x1.fffffep+127', 3.4028234663852886e38],
    ['0x1p-149', 2 ** -149],
    ['0x0p+0', 0],
    ['0X1.8P1', 3],
  ])('reads %s', (text, value) => {
    expect(parseHexFloat(text)).toBeCloseTo(value, 12);
  });

  test('keeps the sign of zero', () => {
    expect(Object.is(parseHexFloat('-0x0p+0'), -0)).toBe(true);
    expect(Object.is(parseHexFloat('0x0p+99999'), 0)).toBe(true);
  });

  test.each(['', '0x', '0x1', '1p3', '0x1.gp+0', '0x1p', '0x1p+1234567', `0x${'f'.repeat(40)}p+0`])(
    'refuses %j',
    (text) => {
      expect(parseHexFloat(text)).toBeUndefined();
    },
  );
});

describe('Lexer', () => {
  test('reads names, numbers, strings and punctuation across white space', () => {
    const lexer = new Lexer(' abc_1\t(\r\n 12 , -0x1p-1, "a\\"b\\\\" ) -> inf', 'm');
    expect(lexer.name('a name')).toBe('abc_1');
    lexer.expect('(');
    expect(lexer.count('a count')).toBe(12);
    lexer.expect(',');
    expect(lexer.number('a number')).toBe(-0.5);
    lexer.expect(',');
    expect(lexer.string('a string')).toBe('a"b\\');
    lexer.expect(')');
    lexer.arrow();
    expect(lexer.number('a number')).toBe(Number.POSITIVE_INFINITY);
    expect(lexer.atEnd()).toBe(true);
  });

  test('says line and column, counted from 1', () => {
    const lexer = new Lexer('ab\n  cd', 'model.mil');
    lexer.name('a name');
    expect(() => lexer.expect(';')).toThrow(expect.objectContaining({ code: 'MIL_SYNTAX', where: 'model.mil:2:3' }));
    expect(lexer.locate(0)).toBe('model.mil:1:1');
  });

  test('refuses an unclosed string, a bad escape, a negative count and a word with a longer name', async () => {
    expect(await codeOf(() => new Lexer('"abc', 'm').string('a string'))).toBe('MIL_SYNTAX');
    expect(await codeOf(() => new Lexer('"\\q"', 'm').string('a string'))).toBe('MIL_SYNTAX');
    expect(await codeOf(() => new Lexer('-1', 'm').count('a count'))).toBe('MIL_SYNTAX');
    expect(await codeOf(() => new Lexer('funcs', 'm').word('func'))).toBe('MIL_SYNTAX');
    expect(await codeOf(() => new Lexer('12ab', 'm').number('a number'))).toBe('MIL_SYNTAX');
  });
});
