import { describe, expect, test } from '@jest/globals';
import { answersToJson, formatAnswers } from '../../runtime/answers.js';
import { temperatures } from '../../runtime/calibration.js';
import { parseMinConfidence } from '../../runtime/confidence-gate.js';
import { parseQuestions } from '../../runtime/questions.js';
import { type JsonObject, parseJson, stringifyJson } from '../../schemas/json.js';
import { NO_CALIBRATION } from './laya-tiny.js';

const NEUTRAL = temperatures(NO_CALIBRATION);
const logs = (...p: number[]) => p.map(Math.log);

function answer(questions: string, ...outputs: { logits: number[]; actionLogits: number[] }[]) {
  const parsed = parseQuestions(parseJson(questions));
  const answers = formatAnswers(parsed, outputs, NEUTRAL);
  return { answers, json: answersToJson(parsed, answers) };
}

const choice = (criteria: string) => `{"q":{"type":"choice","instructions":"?","criteria":${criteria}}}`;

describe('answers', () => {
  test('to a choice have upstream’s fields in upstream’s order', () => {
    const { answers, json } = answer(choice('["a","b"]'), { logits: logs(0.25, 0.75), actionLogits: logs(0.9, 0.1) });
    const text =
      '{"q":{"type":"choice","choice":"b","probabilities":{"a":0.25,"b":0.75},"confidence":0.1887,"answer_confidence":0.75,"action":{"act_probability":0.9}}}';
    expect(JSON.stringify(answers)).toBe(text);
    expect(stringifyJson(json)).toBe(text);
  });

  test('to a score have the expected level and a legend', () => {
    const { json } = answer('{"q":{"type":"score","instructions":"?","criteria":["low",2]}}', {
      logits: logs(0.25, 0.75),
      actionLogits: [0, 0],
    });
    expect(stringifyJson(json)).toBe(
      '{"q":{"type":"score","score":0.75,"legend":{"0":"low","1":"2"},"probabilities":{"0":0.25,"1":0.75},"confidence":0.1887,"answer_confidence":0.75,"action":{"act_probability":0.5}}}',
    );
  });

  test('to a noul have the probability of true, whatever the labels', () => {
    const { json } = answer('{"q":{"type":"noul","instructions":"?","labels":{"true":"B","false":"A"}}}', {
      logits: logs(0.75, 0.25),
      actionLogits: [5],
    });
    expect(stringifyJson(json)).toBe(
      '{"q":{"type":"noul","noul":0.25,"confidence":0.75,"answer_confidence":0.75,"action":{"act_probability":1.0}}}',
    );
  });

  test('keep the order of number-like labels and ids', () => {
    // S01
    const one = '{"type":"choice","instructions":"?","criteria":["10","2","__proto__","01"]}';
    const row = { logits: logs(0.1, 0.2, 0.4, 0.3), actionLogits: [0] };
    const { answers, json } = answer(`{"9":${one},"8":${one},"__proto__":${one}}`, row, row, row);
    expect([...json.keys()]).toEqual(['9', '8', '__proto__']);
    const probabilities = (json.get('9') as JsonObject).get('probabilities') as JsonObject;
    expect([...probabilities.keys()]).toEqual(['10', '2', '__proto__', '01']);
    expect(Object.values(answers).at(-1)).toMatchObject({ type: 'choice', choice: '__proto__' });
    expect(Object.getPrototypeOf(answers)).toBeNull();
  });

  test('give labels back as they were asked for', () => {
    const row = (at: number) => ({ logits: [0, 1, 2, 3].map((i) => (i === at ? 9 : 0)), actionLogits: [0] });
    const chosen = [0, 1, 2, 3].map((at) => answer(choice('["x",2,1.50,true]'), row(at)));
    expect(chosen.map(({ answers }) => (answers.q as { choice: unknown }).choice)).toEqual(['x', 2, 1.5, true]);
    expect(chosen.map(({ json }) => stringifyJson((json.get('q') as JsonObject).get('choice')!))).toEqual([
      '"x"',
      '2',
      '1.5',
      'true',
    ]);
    const { probabilities } = chosen[0]!.answers.q as { probabilities: Record<string, number> };
    expect(Object.keys(probabilities)).toEqual(['2', 'x', '1.5', 'true']);
  });

  test('name the first of equally probable options', () => {
    const { answers } = answer(choice('["a","b","c"]'), { logits: [1, 2, 2], actionLogits: [0] });
    expect(answers.q).toMatchObject({ choice: 'b' });
  });

  test('to a question with one option are certain', () => {
    const { answers } = answer(choice('["only"]'), { logits: [-9], actionLogits: [0] });
    expect(answers.q).toMatchObject({
      choice: 'only',
      confidence: 1,
      answer_confidence: 1,
      probabilities: { only: 1 },
    });
  });

  test('ignore the logits of empty slots', () => {
    const { answers } = answer(choice('["a","b"]'), { logits: [1, 0, Number.NaN, 99], actionLogits: [0] });
    expect(answers.q).toMatchObject({ choice: 'a', answer_confidence: 0.7311 });
  });

  test('are none for no questions', () => {
    const { answers, json } = answer('{}');
    expect(Object.keys(answers)).toEqual([]);
    expect(stringifyJson(json)).toBe('{}');
  });
});

describe('answers in another option order', () => {
  const ordered = (type: string, order: string) => `{"q":{"instructions":"?",${type},"option_order":${order}}}`;
  const row = (...p: number[]) => ({ logits: logs(...p), actionLogits: [0] });

  test('give each option the probability of its slot', () => {
    const asked = ordered('"type":"choice","criteria":["a","b","c"]', '[2,0,1]');
    const { answers, json } = answer(asked, row(0.5, 0.3, 0.2));
    expect(answers.q).toMatchObject({ choice: 'c', answer_confidence: 0.5 });
    expect(stringifyJson((json.get('q') as JsonObject).get('probabilities')!)).toBe('{"a":0.3,"b":0.2,"c":0.5}');
  });

  test('name the first option of equally probable ones, not the first slot', () => {
    const { answers } = answer(ordered('"type":"choice","criteria":["a","b","c"]', '[2,1,0]'), row(0.4, 0.4, 0.2));
    expect(answers.q).toMatchObject({ choice: 'b' });
  });

  test('expect levels and truth where they stand', () => {
    const score = answer(ordered('"type":"score","criteria":["low","mid","high"]', '[2,0,1]'), row(0.7, 0.2, 0.1));
    expect(score.answers.q).toMatchObject({ score: 1.5, legend: { 0: 'low', 2: 'high' }, probabilities: { 2: 0.7 } });
    const noul = answer(ordered('"type":"noul"', '[1,0]'), row(0.9, 0.1));
    expect(noul.answers.q).toMatchObject({ noul: 0.9, confidence: 0.9 });
  });

  test('ignore the logits of empty slots', () => {
    const padded = { logits: [...logs(0.75, 0.25), Number.NaN, 99], actionLogits: [0] };
    const { answers } = answer(ordered('"type":"noul"', '[1,0]'), padded);
    expect(answers.q).toMatchObject({ noul: 0.75 });
  });
});

describe('answers under a threshold', () => {
  const questions =
    '{"q":{"type":"choice","instructions":"?","criteria":["a","b"]},"n":{"type":"noul","instructions":"?"}}';
  const rows = [
    { logits: logs(0.25, 0.75), actionLogits: [0] },
    { logits: logs(0.1, 0.9), actionLogits: [0] },
  ];

  function gated(minConfidence: string) {
    const parsed = parseQuestions(parseJson(questions));
    const answers = formatAnswers(parsed, rows, NEUTRAL, parseMinConfidence(parseJson(minConfidence)));
    return { answers, json: stringifyJson(answersToJson(parsed, answers)) };
  }

  test('end with upstream’s fields in upstream’s order', () => {
    expect(gated('0.8').json).toBe(
      '{"q":{"type":"choice","choice":"b","probabilities":{"a":0.25,"b":0.75},"confidence":0.1887,"answer_confidence":0.75,"action":{"act_probability":1.0},"low_confidence":true,"abstention":"abstained","abstention_threshold":0.8},"n":{"type":"noul","noul":0.9,"confidence":0.9,"answer_confidence":0.9,"action":{"act_probability":1.0},"abstention":"passed","abstention_threshold":0.8}}',
    );
  });

  test('compare the answer’s confidence, four decimals of it, with the threshold as it was given', () => {
    expect(gated('0.75').answers.q).toMatchObject({ abstention: 'passed', abstention_threshold: 0.75 });
    expect(gated('0.75001').answers.q).toMatchObject({ abstention: 'abstained', abstention_threshold: 0.75001 });
  });

  test('take the threshold of their bucket', () => {
    const { answers } = gated('{"noul:2":1,"default":0.5}');
    expect(answers.q).toMatchObject({ abstention: 'passed', abstention_threshold: 0.5 });
    expect(answers.n).toMatchObject({ low_confidence: true, abstention: 'abstained', abstention_threshold: 1 });
  });

  test('are as without one when there is none', () => {
    expect(Object.keys(gated('null').answers.q!)).not.toContain('abstention');
    expect(gated('0').json).toContain('"abstention":"passed","abstention_threshold":0.0}');
  });
});

describe('outputs that no answer can be made of', () => {
  const fine = { logits: [1, 0], actionLogits: [0, 1] };

  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])('are refused: %p', (bad) => {
    for (const row of [
      { ...fine, logits: [bad, 0] },
      { ...fine, actionLogits: [0, bad] },
    ]) {
      expect(() => answer(choice('["a","b"]'), row)).toThrow(
        expect.objectContaining({ name: 'OutputError', code: 'OUTPUT_NOT_FINITE', where: 'questions["q"]' }),
      );
    }
  });

  test.each([
    ['no row', []],
    ['a row too many', [fine, fine]],
    ['a logit missing', [{ ...fine, logits: [1] }]],
    ['no action logits', [{ ...fine, actionLogits: [] }]],
  ])('are refused: %s', (_, rows) => {
    expect(() => answer(choice('["a","b"]'), ...rows)).toThrow(expect.objectContaining({ code: 'OUTPUT_SHAPE' }));
  });
});
