import { MODELS } from '../../registry/models.js';
import type { JsonValue } from '../../schemas/json.js';
import { modelNamed } from '../language/routing-block.js';
import { HttpError } from './errors.js';

/** The name that stands for the choice by language. */
export const AUTO = 'auto';

/** The models that `auto` chooses between. */
export const AUTO_MODELS: readonly string[] = ['laya', 'laya-multilingual'];

/** What upstream reads as "let the router choose", though it is also a repository's name. */
const ROUTER_CHOICE = 'convaiinnovations/laya';

/** Which models a server reaches, and which one answers a request that names none. */
export interface Offer {
  readonly models: readonly string[];
  /** A model of the list, or `auto`. */
  readonly defaultModel: string;
}

/** Who is to answer: the model the client named, the server's default, or the one that fits the state's language. */
export type Target = { readonly kind: 'named' | 'default'; readonly model: string } | { readonly kind: 'auto' };

/**
 * The one rule for the `model` field. A name, alias or repository of a checkpoint means that checkpoint; `auto` means
 * the choice by language where both of its models are served; everything else, or nothing, means the server's default.
 *
 * @throws HttpError MODEL_NOT_SERVED for a checkpoint that this server was not started with
 */
export function resolveTarget(requested: JsonValue | undefined, { models, defaultModel }: Offer): Target {
  const fallback: Target = defaultModel === AUTO ? { kind: 'auto' } : { kind: 'default', model: defaultModel };
  if (typeof requested !== 'string') return fallback;
  const name = requested.trim().toLowerCase();
  if (name === AUTO) return AUTO_MODELS.every((one) => models.includes(one)) ? { kind: 'auto' } : fallback;
  if (name === ROUTER_CHOICE) return fallback;
  const model = modelNamed(name) ?? MODELS.find(({ repo }) => repo.toLowerCase() === name)?.name;
  if (model === undefined) return fallback;
  if (models.includes(model)) return { kind: 'named', model };
  throw new HttpError('MODEL_NOT_SERVED', `model ${model} is unavailable on this server`, {
    expected: [...models],
    found: model,
    where: 'model',
    hint: 'name one of the served models, or none',
  });
}
