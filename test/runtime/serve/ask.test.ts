import { describe, expect, it } from '@jest/globals';
import { readAsk } from '../../../runtime/serve/ask.js';
import { REQUEST_LIMITS } from '../../../runtime/serve/limits.js';
import { codeOf } from '../../workspace.js';

const noul = '{"type":"noul","instructions":"x"}';
const body = (state: string, questions = `{"q":${noul}}`): string => `{"state":${state},"questions":${questions}}`;
const many = (count: number, item: (index: number) => string): string =>
  Array.from({ length: count }, (_, i) => item(i)).join();
const choice = (count: number): string =>
  `{"type":"choice","instructions":"x","criteria":[${many(count, (i) => `"${i}"`)}]}`;
const score = (count: number): string => choice(count).replace('choice', 'score');

describe('readAsk', () => {
  it('keeps the order of number-like keys, and the last of equal ones at the first place', () => {
    const { questions } = readAsk(body('"x"', `{"10":1,"2":${noul},"__proto__":${noul},"10":${noul}}`));
    expect([...questions.keys()]).toEqual(['10', '2', '__proto__']);
    expect(questions.get('10')).toBeInstanceOf(Map);
  });

  it.each([
    ['BODY_NOT_JSON', ''],
    ['BODY_NOT_JSON', '{"state":NaN,"questions":{}}'],
    ['BODY_NOT_JSON', "{'state':1}"],
    ['BODY_INVALID', '[]'],
    ['BODY_INVALID', '"text"'],
    ['BODY_INVALID', '{"state":"x"}'],
    ['BODY_INVALID', '{"questions":{}}'],
    ['BODY_INVALID', '{"state":null,"questions":{}}'],
    ['BODY_INVALID', '{"state":"x","questions":["a"]}'],
    ['BODY_INVALID', '{"state":"x","questions":null}'],
    ['FIELD_UNSUPPORTED', '{"state":"x","questions":{},"max_len":64}'],
    ['FIELD_UNSUPPORTED', '{"state":"x","questions":{},"hooks":[]}'],
    ['TEXT_INVALID', `{"state":[${'9'.repeat(4301)}],"questions":{}}`],
  ])('gives %s for %j', async (code, text) => expect(await codeOf(() => readAsk(text))).toBe(code));

  it('takes controls that are null, and fields it does not know', () => {
    const text = '{"state":"x","questions":{},"max_len":null,"task":null,"trace":1}';
    expect(readAsk(text).questions.size).toBe(0);
  });
});

// Fault S13: each limit, at it and one beyond.
describe('the limits of a request', () => {
  const { questions, stateCharacters, depth, choiceOptions, scoreLevels } = REQUEST_LIMITS;
  const nested = (levels: number): string => body(`${'['.repeat(levels)}${']'.repeat(levels)}`);

  it.each<[string, string, string]>([
    [
      'TOO_MANY_QUESTIONS',
      body('"x"', `{${many(questions, (i) => `"${i}":${noul}`)}}`),
      body('"x"', `{${many(questions + 1, (i) => `"${i}":${noul}`)}}`),
    ],
    ['STATE_TOO_LARGE', body(`"${'a'.repeat(stateCharacters)}"`), body(`"${'a'.repeat(stateCharacters + 1)}"`)],
    ['STATE_TOO_LARGE', body(`"${'😀'.repeat(stateCharacters)}"`), body(`"${'😀'.repeat(stateCharacters + 1)}"`)],
    ['STATE_TOO_LARGE', body(`["${'\\"'.repeat(24_998)}"]`), body(`["${'\\"'.repeat(24_999)}"]`)],
    ['BODY_TOO_DEEP', nested(depth - 1), nested(depth)],
    [
      'OPTIONS_TOO_MANY',
      body('"x"', `{"q":${choice(choiceOptions)}}`),
      body('"x"', `{"q":${choice(choiceOptions + 1)}}`),
    ],
    ['OPTIONS_TOO_MANY', body('"x"', `{"q":${score(scoreLevels)}}`), body('"x"', `{"q":${score(scoreLevels + 1)}}`)],
    [
      'OPTIONS_TOO_MANY',
      body('"x"', `{${many(16, (i) => `"${i}":${choice(32)}`)}}`),
      body('"x"', `{${many(16, (i) => `"${i}":${choice(32)}`)},"z":${choice(1)}}`),
    ],
  ])('%s', async (code, within, beyond) => {
    expect([await codeOf(() => readAsk(within)), await codeOf(() => readAsk(beyond))]).toEqual(['no error', code]);
  });

  it('survives a hundred thousand levels', async () => {
    expect(await codeOf(() => readAsk(nested(100_000)))).toBe('BODY_TOO_DEEP');
  });
});
