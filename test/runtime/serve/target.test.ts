import { describe, expect, it } from '@jest/globals';
import { resolveTarget } from '../../../runtime/serve/target.js';
import { JsonNumber } from '../../../schemas/json.js';
import { codeOf } from '../../workspace.js';

const auto = { models: ['laya', 'laya-multilingual'], defaultModel: 'auto' };
const tiny = { models: ['laya-tiny'], defaultModel: 'laya-tiny' };

// Fault S17: only the models named at the start are reached; one rule for all names.
describe('resolveTarget', () => {
  it.each([
    ...[undefined, null, '', ' ', 'jev-latest', 'gpt', '../../etc', new JsonNumber('1'), ['laya']],
    ...['convaiinnovations/laya', '__proto__', 'constructor', 'auto'],
  ])('means the default by %p', (name) => {
    expect(resolveTarget(name, tiny)).toEqual({ kind: 'default', model: 'laya-tiny' });
    expect(resolveTarget(name, auto)).toEqual({ kind: 'auto' });
  });

  it.each([
    ...[
      ['en', 'laya'],
      ['english', 'laya'],
      ['default', 'laya'],
      ['laya', 'laya'],
      [' Laya ', 'laya'],
    ],
    ...[
      ['ml', 'laya-multilingual'],
      ['multi', 'laya-multilingual'],
      ['multilingual', 'laya-multilingual'],
    ],
    ...[['convaiinnovations/laya-multilingual', 'laya-multilingual']],
  ])('means a served checkpoint by %p', (name, model) => {
    expect(resolveTarget(name, auto)).toEqual({ kind: 'named', model });
  });

  it.each(['laya', 'english', 'typed', 'decisions', 'typed-decisions', 'laya-multilingual'])(
    'does not fall back from %p where it is not served',
    async (name) => expect(await codeOf(() => resolveTarget(name, tiny))).toBe('MODEL_NOT_SERVED'),
  );
});
