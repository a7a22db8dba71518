import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { pythonJson } from '../../runtime/pyjson.js';
import { parseJson } from '../../schemas/json.js';
import { inPython } from './python.js';

// S02: thousands of texts, printed by Python itself in one process.

const digits = (maxLength: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${maxLength}}$`));
const integer = fc
  .tuple(fc.constantFrom('', '-'), digits(30))
  .map(([sign, text]) => sign + text.replace(/^0+(?=.)/, ''));
const numberText = fc.oneof(
  integer,
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.tuple(integer, digits(20)).map(([whole, part]) => `${whole}.${part}`),
  fc
    .tuple(integer, fc.option(digits(5)), fc.constantFrom('e', 'E', 'e+', 'e-', 'E-'), fc.nat(330))
    .map(([whole, part, e, exponent]) => `${whole}${part === null ? '' : `.${part}`}${e}${exponent}`),
);
const text = fc
  .string({
    unit: fc.oneof(
      fc.string({ minLength: 1, maxLength: 1, unit: 'binary' }),
      fc.constantFrom('\ud800', '\udc00', '"', '\\', '\u0085', '\u2028', '\u0000'),
    ),
  })
  .map((value) => JSON.stringify(value));

const { value: jsonText } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    { weight: 4, arbitrary: numberText },
    { weight: 3, arbitrary: text },
    { weight: 1, arbitrary: fc.constantFrom('true', 'false', 'null') },
    { weight: 2, arbitrary: fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items}]`) },
    {
      weight: 2,
      arbitrary: fc
        .array(
          fc.tuple(
            fc.oneof(
              text,
              fc.nat(30).map((n) => `"${n}"`),
            ),
            tie('value'),
          ),
          { maxLength: 4 },
        )
        .map((members) => `{${members.map(([key, value]) => `${key} : ${value}`)}}`),
    },
  ),
}));

test('prints any JSON text as Python does', () => {
  const texts = fc.sample(jsonText, 6000);
  const printed = inPython<string>('json.dumps(json.loads(x), ensure_ascii=False)', texts);
  expect(printed).toHaveLength(texts.length);
  for (const [index, one] of texts.entries()) {
    expect({ one, printed: pythonJson(parseJson(one, { duplicates: 'last' })) }).toEqual({
      one,
      printed: printed[index],
    });
  }
});
