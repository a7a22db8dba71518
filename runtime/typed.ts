import type { JsonValue } from '../schemas/json.js';
import type { Answer, Answers, ChoiceAnswer, NoulAnswer, ScoreAnswer } from './answers.js';

/** What is asked: text, or anything that JSON can hold. */
type Instructions = string | number | boolean | readonly unknown[] | Readonly<Record<string, unknown>>;
type PlainLabel = string | number | boolean;

/** Pick one of the labels: a list of them, or an object of label to description. */
export interface ChoiceDefinition {
  readonly type: 'choice';
  readonly instructions: Instructions;
  readonly criteria: readonly PlainLabel[] | Readonly<Record<string, unknown>>;
  readonly option_order?: readonly number[];
}

/** Place the text on a scale of levels, lowest first. */
export interface ScoreDefinition {
  readonly type: 'score';
  readonly instructions: Instructions;
  readonly criteria: readonly unknown[];
  readonly option_order?: readonly number[];
}

/** Yes or no. */
export interface NoulDefinition {
  readonly type: 'noul';
  readonly instructions: Instructions;
  readonly criteria?: Readonly<Record<string, unknown>> | null;
  readonly labels?: Readonly<Record<'false' | 'true', string>>;
  readonly option_order?: readonly number[];
}

/** Questions by id, or a list of texts: yes/no questions named after themselves. */
export type Questions =
  | Readonly<Record<string, ChoiceDefinition | ScoreDefinition | NoulDefinition>>
  | readonly string[];

/** The answer to a question of this type: a choice's labels are its possible answers. */
export type AnswerOf<D> = D extends { readonly type: 'choice'; readonly criteria: infer C }
  ? ChoiceAnswer<LabelOf<C>>
  : D extends { readonly type: 'score' }
    ? ScoreAnswer
    : D extends { readonly type: 'noul' }
      ? NoulAnswer
      : Answer;

type LabelOf<C> = C extends readonly (infer L)[] ? Extract<L, PlainLabel> : Extract<keyof C, string>;

/** The answers to questions of this type; `Answers` where the type says nothing of them. */
export type AnswersOf<Q> = unknown extends Q
  ? Answers
  : Q extends readonly string[]
    ? { readonly [Id in Q[number]]: NoulAnswer }
    : Q extends JsonValue
      ? Answers
      : { readonly [Id in keyof Q]: AnswerOf<Q[Id]> };

/** What `predict` takes as questions of type Q: parsed JSON and unknown values are checked when they are asked. */
export type Checked<Q> = unknown extends Q ? unknown : Q extends JsonValue ? Q : Questions;
