import { describe, expect, it } from '@jest/globals';
import { countScripts, hasNonLatinWord, nonLatinWeight, sumScripts } from '../../../runtime/language/scripts.js';

const scriptsOf = (text: string) => Object.fromEntries(countScripts(text));

describe('countScripts', () => {
  it('names the script of every letter', () => {
    const letters = {
      latin: 'aÉßøəŁｈﬁªʁ',
      cyrillic: 'щѣ',
      greek: 'αᾳ',
      arabic: 'عپﻻـ',
      hebrew: 'שﬡ',
      han: '漢々𠮷〆',
      kana: 'かカーﾊ',
      hangul: '한ㅎ',
      devanagari: 'हॲ',
      thai: 'ไ',
      georgian: 'ქᲥ',
      armenian: 'Հ',
      ethiopic: 'አ',
      khmer: 'ខ',
      myanmar: 'မ',
      tibetan: 'ཀ',
      sinhala: 'අ',
      other: 'Ꮳⵜᠮㄅⲁ𝓗',
    };
    for (const [script, text] of Object.entries(letters)) {
      expect([text, scriptsOf(text)]).toEqual([text, { [script]: [...text].length }]);
    }
  });

  it('counts no digits, marks, signs or pictures', () => {
    expect(scriptsOf('123 €%+ µ ʼ ʰ ℵ 🙂\u{1faea}\u0301\ufffe\ud800')).toEqual({});
  });

  // Text in a script that Unicode got after this Node was made is text all the same.
  it('counts code points that Unicode has not assigned yet', () => {
    expect(scriptsOf('\u{1c8ff}\u{10ffe}')).toEqual({ other: 2 });
  });
});

describe('sumScripts', () => {
  it('puts the most frequent first, and Latin last among equals', () => {
    const counts = [countScripts('abc дом'), countScripts('漢')];
    expect([...sumScripts(counts)]).toEqual([
      ['cyrillic', 3],
      ['latin', 3],
      ['han', 1],
    ]);
  });
});

describe('nonLatinWeight', () => {
  it('counts dense scripts double', () => {
    expect(nonLatinWeight(countScripts('abcd 漢字'))).toEqual({ weight: 4, share: 0.5 });
    expect(nonLatinWeight(countScripts('abc д'))).toEqual({ weight: 1, share: 0.25 });
    expect(nonLatinWeight(countScripts('1'))).toEqual({ weight: 0, share: 0 });
  });
});

describe('hasNonLatinWord', () => {
  it('passes over names and single letters', () => {
    for (const text of ['Set α to 1', 'Дмитрий Иванов wrote', 'plain', 'café'])
      expect(hasNonLatinWord(text)).toBe(false);
    for (const text of ['hi привет', '订单', 'नमस्ते', 'a한글b']) expect(hasNonLatinWord(text)).toBe(true);
  });
});
