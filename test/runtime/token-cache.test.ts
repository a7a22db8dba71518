import { describe, expect, test } from '@jest/globals';
import { TokenCache } from '../../runtime/token-cache.js';

const AMPLE = { entries: 100, bytes: 10_000 };

/** A cache after `texts`, each with one token: two bytes a letter and four for the token. */
function filled(entries: number, bytes: number, ...texts: string[]): TokenCache {
  const cache = new TokenCache({ entries, bytes });
  for (const text of texts) cache.set(text, [1]);
  return cache;
}

const kept = (cache: TokenCache, ...texts: string[]) => texts.filter((text) => cache.get(text) !== undefined);

describe('a token cache', () => {
  test('gives back what it was given, for exactly that text', () => {
    const cache = new TokenCache(AMPLE);
    const texts = [
      '',
      'a',
      'A',
      'a ',
      'e\u0301',
      '\u00e9',
      '\u{1f600}',
      '\ud83d',
      '__proto__',
      'constructor',
      'a\u0000',
    ];
    for (const [index, text] of texts.entries()) cache.set(text, [index, 2 ** 32 - 1 - index]);
    for (const [index, text] of texts.entries()) expect(cache.get(text)).toEqual([index, 2 ** 32 - 1 - index]);
    expect(kept(cache, 'b', ' a', '\u{1f601}', 'toString')).toEqual([]);
  });

  test('keeps an empty list of tokens', () => {
    const cache = new TokenCache(AMPLE);
    cache.set('x', []);
    expect(cache.get('x')).toEqual([]);
  });

  test('shares no array with anyone', () => {
    const cache = new TokenCache(AMPLE);
    const given = [1, 2, 3];
    cache.set('x', given);
    given[0] = 9;
    cache.get('x')!.push(4);
    cache.get('x')![1] = 9;
    expect(cache.get('x')).toEqual([1, 2, 3]);
  });

  test('drops the oldest when there are too many entries', () => {
    const cache = filled(2, 10_000, 'a', 'b', 'c');
    expect(kept(cache, 'a', 'b', 'c')).toEqual(['b', 'c']);
    expect(cache.used.entries).toBe(2);
  });

  test('drops what was used least recently, not what came first', () => {
    const cache = filled(2, 10_000, 'a', 'b');
    cache.get('a');
    cache.set('c', [1]);
    expect(kept(cache, 'a', 'b', 'c')).toEqual(['a', 'c']);
  });

  test('takes setting again as use, and the new value', () => {
    const cache = filled(2, 10_000, 'a', 'b');
    cache.set('a', [7, 8]);
    cache.set('c', [1]);
    expect(cache.get('a')).toEqual([7, 8]);
    expect(kept(cache, 'b', 'c')).toEqual(['c']);
    expect(cache.used).toEqual({ entries: 2, bytes: 2 + 8 + 2 + 4 });
  });

  test('stays within its bytes: two a UTF-16 unit and four a token', () => {
    const cache = filled(100, 12, 'a', 'b');
    expect(cache.used).toEqual({ entries: 2, bytes: 12 });
    cache.set('c', [1]);
    expect(kept(cache, 'a', 'b', 'c')).toEqual(['b', 'c']);
    cache.set('dd', [1, 2]);
    expect(kept(cache, 'b', 'c', 'dd')).toEqual(['dd']);
    expect(cache.used).toEqual({ entries: 1, bytes: 12 });
  });

  test('never keeps a text that is too costly alone, and drops nothing for it', () => {
    const cache = filled(100, 12, 'a', 'b');
    cache.set('ddd', [1, 2]);
    expect(kept(cache, 'a', 'b', 'ddd')).toEqual(['a', 'b']);
    expect(cache.used).toEqual({ entries: 2, bytes: 12 });
  });

  test('forgets a text whose new ids are too costly', () => {
    const cache = filled(100, 12, 'a', 'b');
    cache.set('a', [1, 2, 3]);
    expect(kept(cache, 'a', 'b')).toEqual(['b']);
    expect(cache.used).toEqual({ entries: 1, bytes: 6 });
  });

  test('without room keeps nothing', () => {
    expect(filled(0, 100, 'a').used).toEqual({ entries: 0, bytes: 0 });
    expect(filled(100, 0, 'a').used).toEqual({ entries: 0, bytes: 0 });
  });
});
