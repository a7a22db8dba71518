import { describe, expect, test } from '@jest/globals';
import { parseQuestions, type Question } from '../../runtime/questions.js';
import { parseJson } from '../../schemas/json.js';

const read = (text: string): Question[] => parseQuestions(parseJson(text));
const one = (definition: string): Question => read(`{"q":${definition}}`)[0]!;
const refusal = (code: string, where: string) => expect.objectContaining({ name: 'InvalidRequestError', code, where });

describe('choice', () => {
  test('keeps labels and descriptions in the order of the text', () => {
    // S01
    const question = one(
      '{"type":"choice","instructions":"Which?","criteria":{"10":"ten","2":null,"__proto__":"p","01":""}}',
    );
    expect(question).toEqual({
      id: 'q',
      type: 'choice',
      instructions: 'Which?',
      labels: ['10', '2', '__proto__', '01'],
      options: ['10: ten', '2', '__proto__: p', '01'],
    });
  });

  test('writes descriptions that are not text as JSON', () => {
    // S02
    const { options } = one(
      '{"type":"choice","instructions":"?","criteria":{"a":{"n":1.0},"b":0,"c":false,"d":[],"e":" "}}',
    );
    expect(options).toEqual(['a: {"n": 1.0}', 'b: 0', 'c: false', 'd: []', 'e:  ']);
  });

  test('takes numbers and booleans in a list as labels, worded as Python words them', () => {
    const { options } = one('{"type":"choice","instructions":"?","criteria":["x",2,1.50,true,1e22,"",-0.0]}');
    expect(options).toEqual(['x', '2', '1.5', 'True', '1e+22', '', '-0.0']);
  });

  test.each([
    ['["a","b","a"]', 2],
    ['[1,1.0]', 1],
    ['[true,1]', 1],
    ['[0,-0.0]', 1],
    ['[1e2,100]', 1],
    ['[1,"1"]', 1],
    ['["true",true]', 1],
    ['["__proto__","__proto__"]', 1],
  ])('refuses labels that are one key of the answer: %s', (criteria, at) => {
    expect(() => one(`{"type":"choice","instructions":"?","criteria":${criteria}}`)).toThrow(
      refusal('QUESTION_INVALID', `questions["q"].criteria[${at}]`),
    );
  });

  test.each(['[null]', '[[]]', '[{}]', '[9007199254740993]', '[1e400]'])('refuses the label in %s', (criteria) => {
    expect(() => one(`{"type":"choice","instructions":"?","criteria":${criteria}}`)).toThrow(
      refusal('QUESTION_INVALID', 'questions["q"].criteria[0]'),
    );
  });

  test.each(['null', '[]', '{}', '"a"', '3', 'true'])('refuses the criteria %s', (criteria) => {
    expect(() => one(`{"type":"choice","instructions":"?","criteria":${criteria}}`)).toThrow(
      refusal('QUESTION_INVALID', 'questions["q"].criteria'),
    );
  });
});

describe('score', () => {
  test('numbers its levels and writes what is not text as JSON', () => {
    const question = one('{"type":"score","instructions":"?","criteria":["low",2,{"a":[1.0]},"","low"]}');
    expect(question).toMatchObject({
      levels: ['low', '2', '{"a": [1.0]}', '', 'low'],
      options: ['level 0: low', 'level 1: 2', 'level 2: {"a": [1.0]}', 'level 3: ', 'level 4: low'],
    });
  });

  test.each([
    ['["a",null]', '[1]'],
    ['[]', ''],
    ['{"0":"a"}', ''],
    ['"low"', ''],
    ['null', ''],
  ])('refuses the criteria %s', (criteria, place) => {
    expect(() => one(`{"type":"score","instructions":"?","criteria":${criteria}}`)).toThrow(
      refusal('QUESTION_INVALID', `questions["q"].criteria${place}`),
    );
  });
});

describe('noul', () => {
  const DEFAULTS = ['false: no, the statement does not hold', 'true: yes, the statement holds'];

  test.each([
    ['', DEFAULTS],
    [',"criteria":null', DEFAULTS],
    [',"criteria":{}', DEFAULTS],
    [',"criteria":{"true":null,"false":""}', DEFAULTS],
    [',"labels":null', DEFAULTS],
    [',"criteria":{"TRUE":"angry"}', [DEFAULTS[0], 'true: angry']],
    [',"criteria":{"False":{"a":1.0},"true":0}', ['false: {"a": 1.0}', 'true: 0']],
    [',"criteria":{"True":"first","true":"second","TRUE":"third"}', [DEFAULTS[0], 'true: third']],
    [',"labels":{"true":"A","false":"B"}', ['B: no, the statement does not hold', 'A: yes, the statement holds']],
    [
      ',"labels":{"false":"\\u0085 no","true":"\\u001cyes\\ufeff"}',
      ['no: no, the statement does not hold', 'yes\ufeff: yes, the statement holds'],
    ],
    [
      ',"labels":{"true":"A","false":"B"},"criteria":{"true":"angry"}',
      ['B: no, the statement does not hold', 'A: angry'],
    ],
  ])('words its options, false first: %s', (fields, options) => {
    expect(one(`{"type":"noul","instructions":"?"${fields}}`).options).toEqual(options);
  });

  test.each(['[]', '"yes"', 'false', '1', '{"yes":"a"}', '{" true":"a"}', '{"true":"a","maybe":"b"}'])(
    'refuses the criteria %s',
    (criteria) => {
      expect(() => one(`{"type":"noul","instructions":"?","criteria":${criteria}}`)).toThrow(
        refusal('QUESTION_INVALID', 'questions["q"].criteria'),
      );
    },
  );

  test.each([
    '{}',
    '[]',
    '"x"',
    '{"true":"A"}',
    '{"True":"A","False":"B"}',
    '{"true":"A","false":" A "}',
    '{"true":"A","false":"\\u0085"}',
    '{"true":1,"false":0}',
    '{"true":"A","false":"B","maybe":"C"}',
  ])('refuses the labels %s', (labels) => {
    expect(() => one(`{"type":"noul","instructions":"?","labels":${labels}}`)).toThrow(
      refusal('QUESTION_INVALID', 'questions["q"].labels'),
    );
  });
});

describe('every question', () => {
  test('sends instructions that are not text as JSON, and strings as they are', () => {
    const ins = (text: string) => one(`{"type":"noul","instructions":${text}}`).instructions;
    expect(['" a "', '{"z":1,"10":2.50}', '["\\u00e9"]', '0', 'true', '1e-7'].map(ins)).toEqual([
      ' a ',
      '{"z": 1, "10": 2.5}',
      '["\u00e9"]',
      '0',
      'true',
      '1e-07',
    ]);
  });

  test.each(['null', '""', '" \\n\\u0085"', '[]', '{}'])('needs instructions: %s', (text) => {
    expect(() => one(`{"type":"noul","instructions":${text}}`)).toThrow(
      refusal('QUESTION_INVALID', 'questions["q"].instructions'),
    );
  });

  test.each(['"bool"', '"Noul"', '"constructor"', 'null', '["noul"]', '0'])('needs a known type: %s', (type) => {
    expect(() => one(`{"type":${type},"instructions":"?"}`)).toThrow(
      refusal('QUESTION_INVALID', 'questions["q"].type'),
    );
  });

  test('does not take fields from the prototype', () => {
    expect(() => one('{"__proto__":{"type":"noul","instructions":"?"}}')).toThrow(
      refusal('QUESTION_INVALID', 'questions["q"].type'),
    );
  });

  test.each(['labels', 'min_confidence'])('is refused with a "%s" that would be ignored', (field) => {
    expect(() => one(`{"type":"score","instructions":"?","criteria":["a"],"${field}":null}`)).toThrow(
      refusal('QUESTION_INVALID', `questions["q"].${field}`),
    );
  });

  test.each([
    ['"type":"choice","criteria":["a","b","c"]', '[2,0,1]', [2, 0, 1]],
    ['"type":"choice","criteria":{"10":"x","2":null}', '[1,0]', [1, 0]],
    ['"type":"score","criteria":["a"]', '[0]', [0]],
    ['"type":"noul"', '[1,0]', [1, 0]],
  ])('may ask for an order of its options, which stay as they are: %s', (fields, order, expected) => {
    const plain = one(`{"instructions":"?",${fields}}`);
    expect(plain).not.toHaveProperty('optionOrder');
    expect(one(`{"instructions":"?",${fields},"option_order":${order}}`)).toEqual({ ...plain, optionOrder: expected });
  });

  test.each([
    ['"type":"choice","criteria":["a","b","c"]', '[0,1]'],
    ['"type":"score","criteria":["a"]', '[1]'],
    ['"type":"noul"', '[0]'],
    ['"type":"noul"', 'null'],
  ])('is refused with an order that is no permutation of its options: %s, %s', (fields, order) => {
    expect(() => one(`{"instructions":"?",${fields},"option_order":${order}}`)).toThrow(
      refusal('QUESTION_INVALID', 'questions["q"].option_order'),
    );
  });

  test('may have other fields', () => {
    expect(one('{"type":"noul","instructions":"?","note":1}')).toEqual(one('{"type":"noul","instructions":"?"}'));
  });

  test.each(['""', '" "', '"\\n\\u0085\\u3000"'])('needs an id: %s', (id) => {
    expect(() => read(`{${id}:{"type":"noul","instructions":"?"}}`)).toThrow(
      expect.objectContaining({ code: 'QUESTION_INVALID' }),
    );
  });

  test.each(['null', '"text"', '[]', '1'])('is an object: %s', (definition) => {
    expect(() => one(definition)).toThrow(refusal('QUESTION_INVALID', 'questions["q"]'));
  });
});

describe('a set of questions', () => {
  test('keeps the order of ids', () => {
    // S01
    const noul = '{"type":"noul","instructions":"?"}';
    const ids = read(`{"10":${noul},"2":${noul},"__proto__":${noul},"a":${noul}}`).map(({ id }) => id);
    expect(ids).toEqual(['10', '2', '__proto__', 'a']);
  });

  test('may be a list of texts, each a noul named after itself', () => {
    const questions = read('["Is it?","10"]');
    expect(questions.map(({ id, type, instructions }) => [id, type, instructions])).toEqual([
      ['Is it?', 'noul', 'Is it?'],
      ['10', 'noul', '10'],
    ]);
    expect(questions[0]).toEqual({ ...one('{"type":"noul","instructions":"Is it?"}'), id: 'Is it?' });
  });

  test.each(['{}', '[]'])('may be empty: %s', (text) => {
    expect(read(text)).toEqual([]);
  });

  test.each([
    ['null', 'questions'],
    ['"text"', 'questions'],
    ['3', 'questions'],
    ['["a","a"]', 'questions[1]'],
    ['["a",{"type":"noul"}]', 'questions[1]'],
  ])('can not be %s', (text, where) => {
    expect(() => read(text)).toThrow(refusal('QUESTIONS_INVALID', where));
  });
});
