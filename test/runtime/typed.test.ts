import { describe, expect, it } from '@jest/globals';
import {
  type Answers,
  type AnswersOf,
  type AutoLaya,
  type ChoiceAnswer,
  Laya,
  type ModelRouting,
  type NoulAnswer,
  type Questions,
  type ScoreAnswer,
} from '../../runtime/index.js';
import type { JsonValue } from '../../schemas/json.js';

/** True only when both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(verdict: Same<A, B>): boolean => verdict;

const questions = {
  topic: { type: 'choice', instructions: 'What is it about?', criteria: ['billing', 'other'] },
  team: { type: 'choice', instructions: { ask: 'Which team?' }, criteria: { a: 'the first', b: null } },
  number: { type: 'choice', instructions: 'Which?', criteria: [1, true, 'x'] },
  urgency: { type: 'score', instructions: 'How urgent?', criteria: ['low', 'high'] },
  angry: { type: 'noul', instructions: 'Angry?', labels: { false: 'calm', true: 'angry' } },
} as const satisfies Questions;
type Typed = AnswersOf<typeof questions>;

/** Never called: these lines are checked by the compiler. */
async function compiles(laya: Laya, parsed: JsonValue, unknown: unknown): Promise<void> {
  const inline = await laya.predict({
    context: 'x',
    questions: { topic: { type: 'choice', instructions: 'Which?', criteria: ['billing', 'other'] } },
  });
  const choice: 'billing' | 'other' = inline.answers.topic.choice;
  const probability: number = inline.answers.topic.probabilities.billing;
  // @ts-expect-error a label that the question doesn't have
  const wrong: 'shipping' = inline.answers.topic.choice;
  // @ts-expect-error a question that was not asked
  void inline.answers.other;
  const list = await laya.predict({ context: 'x', questions: ['Is it late?'] });
  const late: number = list.answers['Is it late?'].noul;
  const loose: Answers = (await laya.predict({ context: 'x', questions: parsed })).answers;
  const looser: Answers = (await laya.predict({ context: 'x', questions: unknown })).answers;
  // @ts-expect-error an unknown type
  await laya.predict({ context: 'x', questions: { a: { type: 'rank', instructions: 'x' } } });
  // @ts-expect-error a choice without labels
  await laya.predict({ context: 'x', questions: { a: { type: 'choice', instructions: 'x' } } });
  // @ts-expect-error labels that are not two texts
  await laya.predict({ context: 'x', questions: { a: { type: 'noul', instructions: 'x', labels: { true: 'y' } } } });
  void [choice, probability, wrong, late, loose, looser];
}

/** The same by way of the router. */
async function compilesRouted(router: AutoLaya, parsed: JsonValue): Promise<void> {
  const { answers, routing, runtime } = await router.predict({
    context: 'x',
    questions: {
      topic: { type: 'choice', instructions: 'Which?', criteria: ['billing', 'other'] },
      angry: { type: 'noul', instructions: 'Angry?' },
    },
  });
  const choice: 'billing' | 'other' = answers.topic.choice;
  const probability: number = answers.topic.probabilities.billing + answers.angry.noul;
  // @ts-expect-error a label that the question doesn't have
  const wrong: 'shipping' = answers.topic.choice;
  // @ts-expect-error a question that was not asked
  void answers.other;
  const loose: Answers = (await router.predict({ context: 'x', questions: parsed })).answers;
  const opened: Promise<AutoLaya> = Laya.open('auto');
  const reason: ModelRouting = runtime.model_routing;
  const ane: string = router.info().laya.ane.status;
  // @ts-expect-error an unknown type
  await router.predict({ context: 'x', questions: { a: { type: 'rank', instructions: 'x' } } });
  void [choice, probability, wrong, loose, opened, reason, ane, routing.model];
}

describe('types of answers', () => {
  it('follow from the types of the questions', () => {
    const verdicts = [
      same<Typed['topic'], ChoiceAnswer<'billing' | 'other'>>(true),
      same<Typed['team'], ChoiceAnswer<'a' | 'b'>>(true),
      same<Typed['number'], ChoiceAnswer<1 | true | 'x'>>(true),
      same<Typed['urgency'], ScoreAnswer>(true),
      same<Typed['angry'], NoulAnswer>(true),
      same<AnswersOf<unknown>, Answers>(true),
      same<AnswersOf<JsonValue>, Answers>(true),
      same<AnswersOf<readonly ['a', 'b']>, { readonly a: NoulAnswer; readonly b: NoulAnswer }>(true),
      same<Typed['topic']['choice'], string>(false),
    ];
    expect(verdicts).toHaveLength(9);
    expect([typeof compiles, typeof compilesRouted]).toEqual(['function', 'function']);
  });
});
