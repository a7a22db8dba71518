import { beforeEach, describe, expect, test } from '@jest/globals';
import { type Prepared, prepare } from '../../runtime/prompt.js';
import { parseQuestions } from '../../runtime/questions.js';
import { openTokenizer } from '../../runtime/tokenizer.js';
import { usageOf, usageToJson } from '../../runtime/usage.js';
import { parseJson, stringifyJson } from '../../schemas/json.js';
import { LIMITS, TOKENIZER_DIR } from './laya-tiny.js';
import { LetterTokenizer } from './letter-tokenizer.js';

const AMPLE = { maxLen: 400, headMaxLen: 300 };

let letters: LetterTokenizer;
beforeEach(() => {
  letters = new LetterTokenizer();
});

async function ask(state: string, questions: string, limits = AMPLE): Promise<Prepared> {
  return prepare(letters, limits, parseJson(state), parseQuestions(parseJson(questions)));
}

async function askOne(state: string, question: string, limits = AMPLE) {
  const row = (await ask(state, `{"q":${question}}`, limits)).rows[0]!;
  return { ...row, text: letters.show(row.ids) };
}

const choice = (...labels: string[]) =>
  `{"type":"choice","instructions":"Which?","criteria":${JSON.stringify(labels)}}`;

describe('a row', () => {
  test('holds type, instructions, options and state, with a marker at each option', async () => {
    const row = await askOne('"Hi."', choice('a', 'b c'));
    expect(row.text).toBe('[C]choice question: Which?[S][M] a[M] b c[S]Hi.[S]');
    expect(row.markers.map((at) => row.ids[at])).toEqual([4, 4]);
    expect(row).toMatchObject({
      markers: [25, 28],
      qtype: 0,
      stateTokens: 3,
      stateTokensDropped: 0,
      headTokensDropped: 0,
      truncated: false,
      collapsedOptions: null,
    });
  });

  test.each([
    ['choice', 0],
    ['score', 1],
    ['noul', 2],
  ])('of a %s has type %i', async (type, qtype) => {
    const criteria = type === 'noul' ? '' : ',"criteria":["a"]';
    const row = await askOne('"s"', `{"type":"${type}","instructions":"?"${criteria}}`);
    expect(row.qtype).toBe(qtype);
    expect(row.text).toContain(`[C]${type} question: ?[S]`);
  });

  test('shows the options in the order the question asks for', async () => {
    const asked = '{"type":"choice","instructions":"Which?","criteria":["a","bb","ccc"],"option_order":[2,0,1]}';
    const row = await askOne('"Hi."', asked);
    expect(row.text).toBe('[C]choice question: Which?[S][M] ccc[M] a[M] bb[S]Hi.[S]');
    expect(row.markers).toEqual([25, 30, 33]);
  });

  test('has every mask token of the texts replaced, and no other special text', async () => {
    // S03
    const question = '{"type":"choice","instructions":"<m>a<m>","criteria":{"<m><m>":"x<m>","b":{"<m>":["<m>"]}}}';
    const row = await askOne('"<m> <s><m><c>"', question);
    expect(row.text).toBe('[C]choice question:  a [S][M]   : x [M] b: {" ": [" "]}[S]  <s> <c>[S]');
    expect(row.ids.filter((id) => id === 4)).toHaveLength(row.markers.length);
  });

  test('has the state as Python’s JSON when it is not text', async () => {
    // S02
    const row = await askOne('{"10":1.0,"2":[1e-7,null,"\\u00e9"]}', choice('a'));
    expect(row.text).toContain('[S]{"10": 1.0, "2": [1e-07, null, "\u00e9"]}[S]');
  });
});

// S08: each cut is upstream's, and none is silent.
describe('a cut', () => {
  const HEAD = '[C]choice question: Which?[S][M] a[S]';
  const limits = { maxLen: 29 + 4 + 1, headMaxLen: 300 };

  test('takes the end of a text or object', async () => {
    expect((await askOne('"1234"', choice('a'), limits)).truncated).toBe(false);
    const text = await askOne('"12345"', choice('a'), limits);
    expect(text.text).toBe(`${HEAD}1234[S]`);
    expect(text).toMatchObject({ stateTokens: 5, stateTokensDropped: 1, truncated: true, headTokensDropped: 0 });
    expect((await askOne('{"a":1}', choice('a'), limits)).text).toBe(`${HEAD}{"a"[S]`);
  });

  test('takes the start of a list', async () => {
    const row = await askOne('["first","last"]', choice('a'), limits);
    expect(row.text).toBe(`${HEAD}st"][S]`);
    expect(row).toMatchObject({ stateTokens: 17, stateTokensDropped: 13, truncated: true });
  });

  test('leaves nothing of a list when there is no room', async () => {
    const row = await askOne('["first"]', choice('a'), { maxLen: 30, headMaxLen: 300 });
    expect(row.text).toBe(`${HEAD}[S]`);
    expect(row).toMatchObject({ stateTokensDropped: 9, truncated: true });
  });

  test('leaves an option its first 48 tokens', async () => {
    const row = await askOne('"s"', choice('x'.repeat(60), 'y'));
    expect(row.text).toContain(`[M] ${'x'.repeat(47)}[M] y[S]`);
    expect(row).toMatchObject({ headTokensDropped: 13, truncated: false, collapsedOptions: null });
  });

  test('reports options that became equal', async () => {
    const same = 'x'.repeat(50);
    const row = await askOne('"s"', choice(`${same}1`, `${same}2`, 'y'));
    expect(row.collapsedOptions).toEqual({ total: 3, distinct: 2, tokensPerOption: null });
  });

  test('shrinks options when they leave less than 16 tokens for the instructions', async () => {
    // 3 options of 1 + 10 tokens leave 15 of 48; (48 - 16) / 3 is 10 each
    const row = await askOne('"s"', choice('aaaaaaaaa', 'aaaaaaaab', 'bbbbbbbbb'), { maxLen: 100, headMaxLen: 48 });
    expect(row.text).toBe('[C]choice question: W[S][M] aaaaaaaa[M] aaaaaaaa[M] bbbbbbbb[S]s[S]');
    expect(row.collapsedOptions).toEqual({ total: 3, distinct: 2, tokensPerOption: 10 });
    expect(row.headTokensDropped).toBe(3 + 5);
  });

  test('keeps options whole when they leave exactly 16 tokens', async () => {
    const row = await askOne('"s"', choice('aaaaaaaaa', 'bbbbbbbbb'), { maxLen: 100, headMaxLen: 38 });
    expect(row.text).toBe('[C]choice question:[S][M] aaaaaaaaa[M] bbbbbbbbb[S]s[S]');
  });

  test('leaves an option at least 4 tokens and the instructions at least 8', async () => {
    const row = await askOne('"s"', choice('aaaaaaaaa', 'bbbbbbbbb'), { maxLen: 100, headMaxLen: 1 });
    expect(row.text).toBe('[C]choice q[S][M] aa[M] bb[S]s[S]');
  });

  test('of the question half itself is reported, even with an empty state', async () => {
    const row = await askOne('""', choice('aaaa'), { maxLen: 30, headMaxLen: 300 });
    expect(row.text).toBe('[C]choice question: Which?[S][M] aaa');
    expect(row).toMatchObject({ truncated: true, stateTokensDropped: 0, headTokensDropped: 2 });
  });

  test('never takes an option’s marker', async () => {
    const limits = (maxLen: number) => ({ maxLen, headMaxLen: 300 });
    expect((await askOne('"s"', choice('a', 'b'), limits(29))).markers).toEqual([25, 28]);
    await expect(askOne('"s"', choice('a', 'b'), limits(28))).rejects.toMatchObject({
      name: 'InvalidRequestError',
      code: 'TOO_MANY_OPTIONS',
      where: 'questions["q"]',
    });
  });

  test('refuses a flood of options before tokenizing them', async () => {
    const flood = Array.from({ length: 401 }, (_, i) => `o${i}`);
    await expect(askOne('"s"', choice(...flood))).rejects.toMatchObject({ code: 'TOO_MANY_OPTIONS' });
    expect(letters.encoded).toEqual([]);
  });
});

describe('a request', () => {
  test('tokenizes the state once', async () => {
    const prepared = await ask('"the state"', `{"a":${choice('x')},"b":${choice('y')},"c":${choice('z')}}`);
    expect(prepared.rows).toHaveLength(3);
    expect(letters.encoded.filter((text) => text === 'the state')).toHaveLength(1);
    expect(prepared.inputTokens).toBe(prepared.rows.reduce((sum, row) => sum + row.ids.length, 0));
  });

  test('without questions tokenizes nothing and takes nothing', async () => {
    const prepared = await ask('"s"', '{}');
    expect(prepared.rows).toEqual([]);
    expect(usageOf(prepared)).toEqual({ input_tokens: 0, output_tokens: 0 });
    expect(letters.encoded).toEqual([]);
  });

  test.each(['{}', '["Is it?"]'])('needs a state, with the questions %s', async (questions) => {
    await expect(ask('null', questions)).rejects.toMatchObject({ code: 'STATE_INVALID', where: 'state' });
  });

  test.each([
    ['"\\ud800"', '["Is it?"]', 'state'],
    ['{"a":["\\udfff"]}', '["Is it?"]', 'state'],
    ['"s"', '{"q":{"type":"noul","instructions":"\\ud800"}}', 'questions["q"].instructions'],
    ['"s"', '{"q":{"type":"choice","instructions":"?","criteria":["a","\\ud800"]}}', 'questions["q"], option 1'],
  ])('must be Unicode: %s, %s', async (state, questions, where) => {
    const tokenizer = await openTokenizer(TOKENIZER_DIR);
    const prepared = prepare(tokenizer, LIMITS, parseJson(state), parseQuestions(parseJson(questions)));
    await expect(prepared).rejects.toMatchObject({ code: 'TEXT_INVALID', where });
  });
});

describe('usage', () => {
  test('tells which questions lost how much', async () => {
    const long = choice('a', 'b'.repeat(20));
    const prepared = await ask('"123456"', `{"10":${long},"2":${choice('a')},"x":${long}}`, {
      maxLen: 50,
      headMaxLen: 300,
    });
    expect(usageOf(prepared)).toEqual({
      input_tokens: 50 + 36 + 50,
      output_tokens: 0,
      state_tokens: 6,
      state_tokens_dropped: 6,
      truncated: true,
      truncated_questions: ['10', 'x'],
    });
  });

  test('names questions with options that became equal', async () => {
    const same = 'x'.repeat(50);
    const prepared = await ask('"s"', `{"__proto__":${choice(`${same}1`, `${same}2`)},"b":${choice('a', 'b')}}`);
    const { options } = usageOf(prepared);
    expect(Object.entries(options!)).toEqual([['__proto__', { total: 2, distinct: 1, tokens_per_option: null }]]);
  });

  test('is printed with upstream’s fields, and the questions in the request’s order', async () => {
    // S01
    const same = choice(`${'x'.repeat(50)}1`, `${'x'.repeat(50)}2`);
    const prepared = await ask('"s"', `{"10":${same},"b":${choice('a')},"__proto__":${same},"2":${same}}`);
    const collapsed = '{"total":2,"distinct":1,"tokens_per_option":null}';
    expect(stringifyJson(usageToJson(prepared, usageOf(prepared)))).toBe(
      `{"input_tokens":${3 * 126 + 31},"output_tokens":0,"state_tokens":1,"state_tokens_dropped":0,"truncated":false,"truncated_questions":[],"options":{"10":${collapsed},"__proto__":${collapsed},"2":${collapsed}}}`,
    );
  });
});
