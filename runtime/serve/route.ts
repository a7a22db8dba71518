import type { JsonObject, JsonValue } from '../../schemas/json.js';
import { decideLanguage } from '../language/route.js';
import { type RoutingBlock, routingBlock, workflowOf } from '../language/routing-block.js';
import type { Target } from './target.js';

/** The model that answers a request, and the blocks that tell why. */
export interface Routed {
  readonly model: string;
  readonly routing: RoutingBlock;
  /** Code of the choice by language; null when there was none. */
  readonly modelRouting: string | null;
}

/** Chooses the model of a request. A model the client named is never second-guessed. */
export async function route(state: JsonValue, questions: JsonObject, target: Target): Promise<Routed> {
  if (target.kind === 'auto') {
    const { checkpoint, reason, model_routing, detection } = await decideLanguage(state);
    const routing = routingBlock(checkpoint, reason, { detection, workflow: workflowOf(questions) });
    return { model: checkpoint, routing, modelRouting: model_routing };
  }
  const { kind, model } = target;
  const workflow = kind === 'named' ? null : workflowOf(questions);
  const block = routingBlock(model, '', { workflow });
  const reason = kind === 'named' ? `explicit model='${block.model}'` : `server default model (--model ${model})`;
  return { model, routing: { ...block, reason }, modelRouting: null };
}
