import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { TokenCache } from '../../runtime/token-cache.js';

type Entry = readonly [text: string, ids: readonly number[]];

const cost = ([text, ids]: Entry) => 2 * text.length + 4 * ids.length;
const total = (entries: readonly Entry[]) => entries.reduce((sum, entry) => sum + cost(entry), 0);

/** The rule in one sentence: the most recently used entries, as many as both limits allow. */
function remember(entries: readonly Entry[], added: Entry, limit: { entries: number; bytes: number }): Entry[] {
  const others = entries.filter(([text]) => text !== added[0]);
  if (limit.entries < 1 || cost(added) > limit.bytes) return others;
  const all = [...others, added];
  while (all.length > limit.entries || total(all) > limit.bytes) all.shift();
  return all;
}

test('a token cache agrees with a list of the most recently used entries', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '\ud83d', '\ude00'), maxLength: 3 });
  const ids = fc.array(fc.nat(2 ** 32 - 1), { maxLength: 4 });
  const step = fc.oneof(fc.tuple(text), fc.tuple(text, ids));
  const limits = fc.record({ entries: fc.nat(6), bytes: fc.nat(60) });
  fc.assert(
    fc.property(limits, fc.array(step, { maxLength: 60 }), (limit, steps) => {
      const cache = new TokenCache(limit);
      let model: Entry[] = [];
      for (const [key, added] of steps) {
        if (added === undefined) {
          const found = model.find(([name]) => name === key);
          expect(cache.get(key)).toEqual(found?.[1]);
          if (found !== undefined) model = [...model.filter((entry) => entry !== found), found];
        } else {
          cache.set(key, added);
          model = remember(model, [key, added], limit);
        }
        expect(cache.used).toEqual({ entries: model.length, bytes: total(model) });
      }
      for (const [key, added] of model) expect(cache.get(key)).toEqual(added);
    }),
    { numRuns: 500 },
  );
});
