import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { RecordError } from '../../schemas/errors.js';
import { fromPlain, type JsonValue, parseJson, stringifyJson } from '../../schemas/json.js';

/** Valid texts, with one character replaced, dropped or inserted in some of them. */
const nearlyJson = fc
  .tuple(
    fc.json({ maxDepth: 4 }),
    fc.nat(),
    fc.constantFrom('', ',', ':', '"', '\\', '[', ']', '{', '}', '0', '-', '.', 'e', ' ', '\n', '\u0000', 'u', 'true'),
    fc.constantFrom(0, 1),
    fc.boolean(),
  )
  .map(([text, at, character, dropped, isChanged]) => {
    if (!isChanged) return text;
    const place = at % (text.length + 1);
    return text.slice(0, place) + character + text.slice(place + dropped);
  });

/** What JavaScript makes of the value, rounding included. */
function asJavaScript(value: JsonValue): string {
  return JSON.stringify(JSON.parse(stringifyJson(value)));
}

function outcome(read: () => unknown): unknown {
  try {
    return { value: read() };
  } catch (error) {
    return { refused: error instanceof RecordError || error instanceof SyntaxError };
  }
}

test('reads exactly the texts that JSON.parse reads, to the same values', () => {
  fc.assert(
    fc.property(nearlyJson, (text) => {
      const expected = outcome(() => JSON.stringify(JSON.parse(text)));
      const found = outcome(() => asJavaScript(parseJson(text, { duplicates: 'last' })));
      expect(found).toEqual(expected);
    }),
    { numRuns: 3000 },
  );
});

test('written text reads back to the same value, with every indent', () => {
  fc.assert(
    fc.property(fc.json(), fc.constantFrom(0, 1, 2, 4), (text, indent) => {
      const value = parseJson(text, { duplicates: 'last' });
      expect(parseJson(stringifyJson(value, indent))).toEqual(value);
    }),
    { numRuns: 500 },
  );
});

test('writes what JSON.stringify writes for plain values, and gives them back', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      const read = fromPlain(JSON.parse(text));
      expect(stringifyJson(read, indent)).toBe(text);
      expect(asJavaScript(parseJson(text))).toBe(JSON.stringify(value));
    }),
    { numRuns: 1000 },
  );
});
