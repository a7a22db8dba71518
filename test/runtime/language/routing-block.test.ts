import { describe, expect, it } from '@jest/globals';
import { modelNamed, routingBlock, workflowOf } from '../../../runtime/language/routing-block.js';
import { fromPlain } from '../../../schemas/json.js';
import { codeOf } from '../../workspace.js';

const WORKFLOWS = {
  agent_trace_observability: ['action', 'needs_review', 'outcome', 'risk', 'urgency'],
  customer_service: ['action', 'category', 'churn_risk', 'needs_human', 'urgency'],
  invoice_processing: ['discrepancy_severity', 'disposition', 'duplicate', 'matches_order', 'urgency'],
  security_incidents: ['credential_compromise', 'disposition', 'severity', 'true_positive', 'urgency'],
};
const questionsOf = (ids: readonly string[]) => fromPlain(Object.fromEntries(ids.map((id) => [id, null])));

describe('workflowOf', () => {
  it('names a set of typed decisions by its question ids, in any order', () => {
    for (const [name, ids] of Object.entries(WORKFLOWS)) {
      expect(workflowOf(questionsOf(ids))).toBe(name);
      expect(workflowOf(questionsOf([...ids].reverse()))).toBe(name);
    }
  });

  it('names none for more, fewer or other ids', () => {
    for (const ids of Object.values(WORKFLOWS)) {
      expect(workflowOf(questionsOf(ids.slice(1)))).toBeNull();
      expect(workflowOf(questionsOf([...ids, 'other']))).toBeNull();
      expect(workflowOf(questionsOf([...ids.slice(1), 'toString']))).toBeNull();
    }
    for (const other of [null, '', {}, [], ['urgency'], 7]) expect(workflowOf(fromPlain(other))).toBeNull();
  });
});

describe('modelNamed', () => {
  it('knows every name of a checkpoint, in any case and with blanks around it', () => {
    const names = {
      laya: ['laya', 'en', 'english', 'default', ' English ', 'DEFAULT'],
      'laya-multilingual': ['laya-multilingual', 'multi', 'ml', 'multilingual', 'ML'],
      'laya-typed-decisions': ['laya-typed-decisions', 'typed', 'typed-decisions', 'typed_decisions', 'decisions'],
      'laya-tiny': ['laya-tiny'],
    };
    for (const [model, all] of Object.entries(names)) {
      for (const name of all) expect([name, modelNamed(name)]).toEqual([name, model]);
    }
  });

  it('knows no other', () => {
    for (const name of ['', 'auto', 'gpt', 'constructor', '__proto__', 'english2']) {
      expect(modelNamed(name)).toBeUndefined();
    }
  });
});

describe('routingBlock', () => {
  it('has upstream’s name and the repository of the pinned weights', () => {
    expect(routingBlock('laya-typed-decisions', 'because', { workflow: 'customer_service' })).toEqual({
      model: 'typed-decisions',
      repo: 'convaiinnovations/laya-typed-decisions',
      reason: 'because',
      detection: null,
      workflow: 'customer_service',
    });
    expect(routingBlock('laya-tiny', '').model).toBe('laya-tiny');
  });

  it('refuses a model that is not registered', async () => {
    expect(await codeOf(() => routingBlock('gpt', ''))).toBe('MODEL_UNKNOWN');
  });
});
