import { describe, expect, test } from '@jest/globals';
import { fromSlots, parseOptionOrder, toSlots } from '../../runtime/option-order.js';
import { parseJson } from '../../schemas/json.js';

const parse = (text: string, count: number) => parseOptionOrder(parseJson(text), count, 'here');

describe('option_order', () => {
  test.each([
    ['[0]', 1, [0]],
    ['[2,0,1]', 3, [2, 0, 1]],
    ['[1, -0]', 2, [1, 0]],
  ])('takes a permutation: %s', (text, count, order) => {
    expect(parse(text, count)).toEqual(order);
  });

  test.each([
    ['[]', 1],
    ['[0,1]', 3],
    ['[0,1,2]', 2],
    ['[0,0]', 2],
    ['[1,2]', 2],
    ['[-1,0]', 2],
    ['[0.0,1]', 2],
    ['[0,1e0]', 2],
    ['[false,true]', 2],
    ['["0","1"]', 2],
    ['[null,0]', 2],
    ['[[0],1]', 2],
    ['[0,100000000000000000000000000000]', 2],
    ['{"0":1,"1":0}', 2],
    ['"01"', 2],
    ['2', 2],
    ['null', 2],
  ])('refuses %s for %i options', (text, count) => {
    expect(() => parse(text, count)).toThrow(
      expect.objectContaining({ name: 'InvalidRequestError', code: 'QUESTION_INVALID', where: 'here' }),
    );
  });

  test('shows option order[slot] in each slot, and is undone', () => {
    const options = ['a', 'b', 'c', 'd'];
    const order = [2, 0, 3, 1];
    expect(toSlots(options, order)).toEqual(['c', 'a', 'd', 'b']);
    expect(fromSlots(toSlots(options, order), order)).toEqual(options);
    expect(fromSlots(toSlots(options, undefined), undefined)).toEqual(options);
    expect(options).toEqual(['a', 'b', 'c', 'd']);
  });
});
