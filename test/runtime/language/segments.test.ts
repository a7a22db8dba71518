import { describe, expect, it } from '@jest/globals';
import { segmentsOf } from '../../../runtime/language/segments.js';
import { fromPlain } from '../../../schemas/json.js';

const wordsOf = (text: string) => segmentsOf(text).flatMap(({ words }) => words);
const textsOf = (state: unknown) => segmentsOf(fromPlain(state)).map(({ text }) => text);

describe('segmentsOf', () => {
  it('reads the values of a state in their order, not its keys', () => {
    expect(textsOf({ b: 'one', a: ['two', { c: 'three', d: 4 }], e: null })).toEqual(['one', 'two', 'three']);
    expect(textsOf(['one', { x: 'two', y: 'three' }, 'four'])).toEqual(['one', 'two', 'three', 'four']);
    for (const none of [null, 7, true, '', ' \n', [], {}]) expect(textsOf(none)).toEqual([]);
  });

  it('splits lines, and long lines at blanks', () => {
    expect(textsOf('one\r\ntwo\n\nthree')).toEqual(['one', 'two', 'three']);
    const pieces = textsOf('word '.repeat(200));
    expect(pieces.length).toBeGreaterThan(3);
    expect(pieces.every((piece) => piece.length <= 280 && !piece.trim().includes('wor '))).toBe(true);
    expect(textsOf('x'.repeat(600)).map((piece) => piece.length)).toEqual([280, 280, 40]);
  });

  it('reads the start of a text and the end of a conversation', () => {
    const long = 'x '.repeat(5000);
    expect(textsOf({ a: 'first', b: long, c: 'last' }).join(' ')).toMatch(/^first x/);
    expect(textsOf({ a: 'first', b: long, c: 'last' })).not.toContain('last');
    expect(textsOf(['first', long, 'last'])).not.toContain('first');
    expect(textsOf(['first', long, 'last']).at(-1)).toBe('last');
    expect(textsOf(long).join('').length).toBeLessThanOrEqual(6000);
  });

  it('reads a state that is nested as deep as JSON may be', () => {
    let state: unknown = 'deep';
    for (let level = 0; level < 900; level++) state = level % 2 ? [state] : { a: state };
    expect(textsOf(state)).toEqual(['deep']);
  });

  it('takes words, and no addresses, identifiers, numbers or acronyms', () => {
    expect(wordsOf('see https://example.com/a?b=c or a@b.org, v1.2 of node.js')).toEqual(['see', 'or', 'of']);
    expect(wordsOf('the readFile of_x `y` #tag --flag $HOME failed in /usr/lib/node')).toEqual(['the', 'failed', 'in']);
    expect(wordsOf('order 66 of iPhone15 for the USA')).toEqual(['order', 'of', 'for', 'the']);
    expect(wordsOf("it's “quoted”, (in) well-known/other l'été!")).toEqual([
      "it's",
      'quoted',
      'in',
      'well-known',
      'other',
      "l'été",
    ]);
  });

  it('leaves names out where enough other words are left', () => {
    expect(wordsOf('Please tell José García about it')).toEqual(['Please', 'tell', 'about', 'it']);
    expect(wordsOf('Buenos Días José')).toEqual(['Buenos', 'Días', 'José']);
  });

  it('keeps the words of a text in capitals, but not acronyms alone', () => {
    expect(wordsOf('WHERE IS MY ORDER')).toEqual(['WHERE', 'IS', 'MY', 'ORDER']);
    expect(wordsOf('MON DES EST LA')).toEqual([]);
  });

  it('marks prose, not code, names and single words', () => {
    const telling = (text: string) => segmentsOf(text).map((segment) => segment.telling);
    expect(telling('where is my order\nuser\nJosé García\nreturn client.send(payload);\nif (a == b) {')).toEqual([
      true,
      false,
      false,
      false,
      false,
    ]);
  });
});
