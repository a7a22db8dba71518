import { beforeAll, describe, expect, test } from '@jest/globals';
import { answersToJson, formatAnswers } from '../../runtime/answers.js';
import { temperatures } from '../../runtime/calibration.js';
import { parseMinConfidence } from '../../runtime/confidence-gate.js';
import { InvalidRequestError } from '../../runtime/errors.js';
import { type Prepared, prepare } from '../../runtime/prompt.js';
import { pythonJson } from '../../runtime/pyjson.js';
import { parseQuestions } from '../../runtime/questions.js';
import { openTokenizer, type PromptTokenizer } from '../../runtime/tokenizer.js';
import { usageOf, usageToJson } from '../../runtime/usage.js';
import { type JsonObject, type JsonValue, parseJson, toPlain } from '../../schemas/json.js';
import { CASES, INVALID, LIMITS, NO_CALIBRATION, TOKENIZER_DIR } from './laya-tiny.js';

// What upstream itself recorded. S01, S02, S03, S04, S05, S08: order, number text, mask tokens, Unicode, special
// tokens and cuts all show up as other token ids.

let tokenizer: PromptTokenizer;
beforeAll(async () => {
  tokenizer = await openTokenizer(TOKENIZER_DIR);
});

const request = (state: JsonValue, questions: JsonValue): Promise<Prepared> =>
  prepare(tokenizer, LIMITS, state, parseQuestions(questions));

const identity = ({ rows }: Prepared) => rows.map(({ ids, markers, qtype }) => ({ ids, markers, qtype }));

describe('the goldens of laya-tiny', () => {
  test('are there', () => {
    expect(CASES).toHaveLength(127);
    expect(CASES.flatMap(({ items }) => items)).toHaveLength(404);
    expect(INVALID).toHaveLength(83);
  });

  test.each(CASES)('$name: token ids, markers and usage are upstream’s', async (golden) => {
    const prepared = await request(golden.state, golden.questions);
    expect(identity(prepared)).toEqual(golden.items);
    expect(pythonJson(usageToJson(prepared, usageOf(prepared)))).toBe(pythonJson(golden.usage));
  });

  test.each(CASES.filter((one) => one.requestText !== undefined))(
    '$name: from the request’s own text',
    async (golden) => {
      const body = parseJson(golden.requestText!) as JsonObject;
      const prepared = await request(body.get('state')!, body.get('questions')!);
      expect(identity(prepared)).toEqual(golden.items);
    },
  );

  test.each(CASES)('$name: answers are upstream’s, to the byte', (golden) => {
    const questions = parseQuestions(golden.questions);
    const outputs = golden.logits.map((logits, i) => ({ logits, actionLogits: golden.actionLogits[i]! }));
    const minConfidence = parseMinConfidence(golden.minConfidence);
    const answers = formatAnswers(questions, outputs, temperatures(NO_CALIBRATION), minConfidence);
    expect(pythonJson(answersToJson(questions, answers))).toBe(pythonJson(golden.answers));
    expect(JSON.parse(JSON.stringify(answers))).toEqual(JSON.parse(JSON.stringify(toPlain(golden.answers))));
  });

  test.each(INVALID)('$name: is refused as upstream does', async (invalid) => {
    const refused = await Promise.resolve(invalid.minConfidence)
      .then(parseMinConfidence)
      .then(() => request(invalid.state, invalid.questions))
      .then(
        () => undefined,
        (error: unknown) => error,
      );
    expect(refused).toBeInstanceOf(InvalidRequestError);
    expect((refused as InvalidRequestError).where).toBeTruthy();
  });
});
