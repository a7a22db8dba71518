import { describe, expect, it } from '@jest/globals';
import { route } from '../../../runtime/serve/route.js';
import { type JsonObject, parseJson } from '../../../schemas/json.js';

const questions = (...ids: string[]): JsonObject => new Map(ids.map((id) => [id, null]));

describe('route', () => {
  it.each([
    ['Please refund the order, I was charged twice.', 'laya', 'english', 'language_english'],
    ['С меня дважды списали деньги за заказ.', 'laya-multilingual', 'multilingual', 'language_non_latin_script'],
    ['12345', 'laya', 'english', 'no_text_default'],
  ])('chooses by the language of %j', async (state, model, name, code) => {
    const routed = await route(state, questions('a'), { kind: 'auto' });
    expect(routed).toMatchObject({ model, modelRouting: code, routing: { model: name, workflow: null } });
    expect(Object.keys(routed.routing)).toEqual(['model', 'repo', 'reason', 'detection', 'workflow']);
    expect(routed.routing.detection).not.toBeNull();
  });

  it('keeps to the model the client named, whatever the language', async () => {
    const ids = questions('urgency', 'action', 'category', 'churn_risk', 'needs_human');
    const routed = await route(parseJson('["Привет"]'), ids, { kind: 'named', model: 'laya' });
    expect(routed).toMatchObject({ model: 'laya', modelRouting: null, routing: { detection: null, workflow: null } });
    expect(routed.routing.reason).toBe("explicit model='english'");
  });

  it('names the workflow of a set of questions', async () => {
    const ids = questions('urgency', 'action', 'category', 'churn_risk', 'needs_human');
    const { routing } = await route('x', ids, { kind: 'default', model: 'laya-tiny' });
    expect(routing).toMatchObject({ model: 'laya-tiny', workflow: 'customer_service' });
  });
});
