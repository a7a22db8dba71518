import { fromPlain } from '../schemas/json.js';
import { type Answered, type Asked, extendResult, type Predictor } from './extend.js';
import { loadDetector } from './language/detect.js';
import { decideLanguage, type LanguageDecision, type ModelRouting } from './language/route.js';
import { type RoutingBlock, routingBlock, routingToJson, workflowOf } from './language/routing-block.js';
import type { OpenOptions } from './open.js';
import { predictShortlist, type Shortlisted, type ShortlistOptions } from './shortlist.js';

/** The models a router chooses between. */
const ROUTED = ['laya', 'laya-multilingual'] as const;
export type Routed = (typeof ROUTED)[number];

/** A result with the model's choice in it, and why. */
export type RoutedResult<A extends Answered> = A & {
  readonly routing: RoutingBlock;
  readonly runtime: { readonly model_routing: ModelRouting };
};

/** A choice of model that was made, before anything ran. */
export interface RouteDecision {
  readonly checkpoint: Routed;
  readonly model_routing: ModelRouting;
  readonly routing: RoutingBlock;
}

/**
 * `laya` and `laya-multilingual` behind one `predict`: each request goes to one of them by the language of its state.
 *
 *     await using router = await Laya.open('auto');
 *     const { answers, routing } = await router.predict({ context: 'Der Kunde wurde zweimal belastet.', questions });
 */
export class LayaRouter<Q extends Asked, A extends Answered, Rest extends readonly unknown[] = []> {
  readonly #models: Readonly<Record<Routed, Predictor<Q, A, Rest>>>;

  private constructor(models: Readonly<Record<Routed, Predictor<Q, A, Rest>>>) {
    this.#models = models;
  }

  /**
   * Opens both models with the same options, by way of `open`. When one can't be opened the other is closed again, and
   * the first error is thrown.
   */
  static async open<Q extends Asked, A extends Answered, Rest extends readonly unknown[]>(
    open: (model: Routed, options: OpenOptions) => Promise<Predictor<Q, A, Rest>>,
    options: OpenOptions = {},
  ): Promise<LayaRouter<Q, A, Rest>> {
    const [models] = await Promise.all([
      Promise.allSettled(ROUTED.map((model) => open(model, options))),
      loadDetector(),
    ]);
    const failed = models.find((model) => model.status === 'rejected');
    if (failed) {
      await Promise.allSettled(models.map((model) => (model.status === 'fulfilled' ? model.value.close() : undefined)));
      throw failed.reason;
    }
    const [laya, multilingual] = models.map((model) => (model as PromiseFulfilledResult<Predictor<Q, A, Rest>>).value);
    return new LayaRouter<Q, A, Rest>({ laya: laya!, 'laya-multilingual': multilingual! });
  }

  /** Chooses the model for a request without running it. Throws RecordError for a context or questions that aren't JSON. */
  async route(request: Asked): Promise<RouteDecision> {
    return decisionFor(await decideLanguage(fromPlain(request.context)), request);
  }

  /** `Laya.predict` on the model that fits the state's language; throws what it throws. */
  async predict(request: Q, ...rest: Rest): Promise<RoutedResult<A>> {
    const decision = await this.route(request);
    return annotate(await this.#models[decision.checkpoint].predict(request, ...rest), decision);
  }

  /** `Laya.predictShortlist` on the model that fits the state's language; throws what it throws. */
  async predictShortlist(request: Q, options: ShortlistOptions, ...rest: Rest): Promise<RoutedResult<Shortlisted<A>>> {
    const decision = await this.route(request);
    return annotate(await predictShortlist(this.#models[decision.checkpoint], request, options, ...rest), decision);
  }

  /** `Laya.info` of each model. */
  info(): Readonly<Record<Routed, object>> {
    const { laya, 'laya-multilingual': multilingual } = this.#models;
    return { laya: laya.info?.() ?? {}, 'laya-multilingual': multilingual.info?.() ?? {} };
  }

  /** `Laya.warmUp` of both models, one after the other. */
  async warmUp(): Promise<void> {
    for (const model of ROUTED) await this.#models[model].warmUp?.();
  }

  /** `Laya.waitForAne` of both models. */
  async waitForAne(signal?: AbortSignal): Promise<void> {
    await Promise.all(ROUTED.map((model) => this.#models[model].waitForAne?.(signal)));
  }

  /** Closes both models, and throws the first error once both are. */
  async close(): Promise<void> {
    const closed = await Promise.allSettled(ROUTED.map((model) => this.#models[model].close()));
    const failed = closed.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function decisionFor(
  { checkpoint, model_routing, reason, detection }: LanguageDecision,
  request: Asked,
): RouteDecision {
  const workflow = workflowOf(fromPlain(request.questions));
  return { checkpoint, model_routing, routing: routingBlock(checkpoint, reason, { detection, workflow }) };
}

function annotate<A extends Answered>(result: A, { model_routing, routing }: RouteDecision): RoutedResult<A> {
  const json = new Map([['routing', routingToJson(routing)]]);
  return extendResult(result, { blocks: { routing }, json, runtime: { model_routing } });
}
