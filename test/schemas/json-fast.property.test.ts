import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseJson, toPlain } from '../../schemas/json.js';
import { parsePlainFast } from '../../schemas/json-fast.js';

const strict = (text: string): unknown => {
  try {
    return JSON.stringify(toPlain(parseJson(text)));
  } catch {
    return 'refused';
  }
};

/** JSON texts as records have them, and the same with a piece put in, taken out or doubled. */
const nearlyRecord = fc
  .tuple(
    fc.json({ maxDepth: 4 }),
    fc.constantFrom(0, 1, 2),
    fc.nat(),
    fc.constantFrom(
      '',
      ',',
      ':',
      '"',
      '\\',
      '{',
      '}',
      '"a":1,',
      '"":',
      '1e999',
      '9007199254740993',
      '\ufeff',
      ' ',
      '-',
      '"__proto__":{},',
    ),
    fc.constantFrom(0, 1),
  )
  .map(([text, indent, at, piece, dropped]) => {
    const full = JSON.stringify(JSON.parse(text), null, indent);
    const place = at % (full.length + 1);
    return full.slice(0, place) + piece + full.slice(place + dropped);
  });

test('reads a text to what the strict reader gives, or leaves it to that', () => {
  fc.assert(
    fc.property(nearlyRecord, (text) => {
      const found = parsePlainFast(text);
      if (found !== undefined) expect(JSON.stringify(found)).toBe(strict(text));
    }),
    { numRuns: 3000 },
  );
});

test('reads every text that JSON.stringify writes of an object without special keys', () => {
  const key = fc.string({ maxLength: 5 }).filter((one) => one !== '__proto__');
  const member = fc.oneof(
    fc.string(),
    fc.boolean(),
    fc.constant(null),
    fc.integer(),
    fc.double({ noNaN: true, min: -1, max: 1 }),
  );
  fc.assert(
    fc.property(
      fc.dictionary(key, fc.oneof(member, fc.array(member), fc.dictionary(key, member))),
      fc.constantFrom(0, 1),
      (value, indent) => {
        expect(parsePlainFast(JSON.stringify(value, null, indent))).toBeDefined();
      },
    ),
  );
});

test.each([
  '{"a":1,"a":2}',
  '{"a":1,"\\u0061":2}',
  '{"a":{"b":1,"b":1}}',
  '{"__proto__":1}',
  '1e999',
  '9007199254740993',
  `${'['.repeat(300)}${']'.repeat(300)}`,
  `${'['.repeat(100_000)}`,
  '\ufeff{}',
  '',
  '{"a":1,}',
])('leaves %j to the strict reader', (text) => {
  expect(parsePlainFast(text)).toBeUndefined();
});
