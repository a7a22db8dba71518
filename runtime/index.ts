export * from '../registry/errors.js';
export { LayaError, RecordError } from '../schemas/errors.js';
export { type JsonObject, type JsonValue, parseJson, stringifyJson } from '../schemas/json.js';
export type { Answer, Answers, ChoiceAnswer, NoulAnswer, ScoreAnswer } from './answers.js';
export type { Abstention } from './confidence-gate.js';
export * from './errors.js';
export type { RuntimeInfo } from './info.js';
export type { Detection } from './language/analyse.js';
export type { ModelRouting } from './language/route.js';
export type { RoutingBlock } from './language/routing-block.js';
export { type AutoLaya, Laya } from './laya.js';
export type { OpenOptions } from './open.js';
export type { Device, DeviceReason, GraphChoice, RoutingReason } from './plan.js';
export type { PredictOptions, Request, RequestTrace, Result } from './request.js';
export type { LayaRouter, RouteDecision, RoutedResult } from './router.js';
export type { Embed, Shortlist, Shortlisted, ShortlistOptions } from './shortlist.js';
export type { LayaInfo } from './status.js';
export type {
  AnswerOf,
  AnswersOf,
  ChoiceDefinition,
  NoulDefinition,
  Questions,
  ScoreDefinition,
} from './typed.js';
export type { Usage } from './usage.js';
