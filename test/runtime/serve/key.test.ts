import { describe, expect, it } from '@jest/globals';
import { keyCheck } from '../../../runtime/serve/key.js';
import { codeOf } from '../../workspace.js';

describe('keyCheck', () => {
  it('lets everyone in without a key', () => {
    for (const isKey of [keyCheck(undefined), keyCheck('')])
      expect([isKey(undefined), isKey('Bearer x')]).toEqual([true, true]);
  });

  it.each([
    undefined,
    '',
    'secret',
    'Bearer',
    'Bearer ',
    'bearer secret',
    'Bearer secret ',
    'Bearer secre',
    'Basic secret',
  ])('refuses %p', (header) => expect(keyCheck('secret')(header)).toBe(false));

  it('takes the key, also beyond ASCII as the wire carries it', () => {
    expect(keyCheck('secret')('Bearer secret')).toBe(true);
    const onTheWire = Buffer.from('Bearer geheimß').toString('latin1');
    expect(keyCheck('geheimß')(onTheWire)).toBe(true);
  });

  it.each(['secret\n', ' secret', 'a b', '\0'])('does not start with the key %j', async (key) => {
    expect(await codeOf(() => keyCheck(key))).toBe('API_KEY_INVALID');
  });
});
