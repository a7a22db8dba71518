import { beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { InvalidRequestError } from '../../runtime/errors.js';
import { prepare } from '../../runtime/prompt.js';
import { parseQuestions } from '../../runtime/questions.js';
import { openTokenizer, type PromptTokenizer } from '../../runtime/tokenizer.js';
import { fromPlain } from '../../schemas/json.js';
import { TOKENIZER_DIR } from './laya-tiny.js';

let tokenizer: PromptTokenizer;
beforeAll(async () => {
  tokenizer = await openTokenizer(TOKENIZER_DIR);
});

const text = fc
  .array(
    fc.oneof(fc.constantFrom('[MASK]', '[SEP]', '[MASK', 'MASK]', ' ', 'the customer '), fc.string({ unit: 'binary' })),
  )
  .map((parts) => parts.join(''));
const labels = fc.uniqueArray(text, { minLength: 1, maxLength: 30 });
const question = fc.oneof(
  fc.record({ type: fc.constant('choice'), instructions: text, criteria: labels }),
  fc.record({ type: fc.constant('score'), instructions: text, criteria: labels }),
  fc.record({ type: fc.constant('noul'), instructions: text, criteria: fc.record({ true: text, false: text }) }),
);
const state = fc.oneof(text, fc.array(text), fc.dictionary(text, fc.jsonValue()));

test('a prepared row has one mask token per option, fits, and accounts for every token', async () => {
  // S03, S08
  const limits = fc.record({ maxLen: fc.integer({ min: 20, max: 300 }), headMaxLen: fc.integer({ min: 1, max: 200 }) });
  let checked = 0;
  await fc.assert(
    fc.asyncProperty(state, question, limits, async (given, asked, budget) => {
      const stateJson = fromPlain(given);
      const questions = parseOrRefuse(asked);
      if (questions === undefined) return;
      const prepared = await prepare(tokenizer, budget, stateJson, questions).catch(refusal);
      if (prepared === undefined) return;
      checked += 1;
      const row = prepared.rows[0]!;
      const { mask, sep } = tokenizer;
      const masks = Array.from(row.ids.keys()).filter((at) => row.ids[at] === mask.id);
      expect(row.markers).toEqual(masks);
      expect(row.markers).toHaveLength(questions[0]!.options.length);
      expect(row.ids.length).toBeLessThanOrEqual(budget.maxLen);
      if (!row.truncated) {
        expect(row.ids.at(-1)).toBe(sep.id);
        expect(row.stateTokensDropped).toBe(0);
      }
      if (row.stateTokensDropped > 0) expect(row.truncated).toBe(true);
    }),
    { numRuns: 400 },
  );
  expect(checked).toBeGreaterThan(100);

  function parseOrRefuse(asked: object) {
    try {
      return parseQuestions(fromPlain({ q: asked }));
    } catch (error) {
      return refusal(error);
    }
  }

  function refusal(error: unknown): undefined {
    expect(error).toBeInstanceOf(InvalidRequestError);
    return undefined;
  }
});
