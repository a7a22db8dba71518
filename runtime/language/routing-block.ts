import { findModel, MODELS } from '../../registry/models.js';
import { fromPlain, type JsonObject, type JsonValue } from '../../schemas/json.js';
import type { Detection } from './analyse.js';

/** Why a checkpoint answered, as upstream's API tells it. */
export interface RoutingBlock {
  /** `english`, `multilingual` or `typed-decisions`; the model's own name for any other. */
  readonly model: string;
  readonly repo: string;
  /** For people; may change. */
  readonly reason: string;
  /** Null when no language was looked for. */
  readonly detection: Detection | null;
  /** The set of typed decisions that the question ids are, if they are one. */
  readonly workflow: string | null;
}

/** Upstream's names of the checkpoints. */
const UPSTREAM_NAMES: Readonly<Record<string, string>> = {
  laya: 'english',
  'laya-multilingual': 'multilingual',
  'laya-typed-decisions': 'typed-decisions',
};

/** What clients call the checkpoints, besides their own and upstream's names. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['en', 'laya'],
  ['default', 'laya'],
  ['multi', 'laya-multilingual'],
  ['ml', 'laya-multilingual'],
  ['typed', 'laya-typed-decisions'],
  ['typed_decisions', 'laya-typed-decisions'],
  ['decisions', 'laya-typed-decisions'],
  ...Object.entries(UPSTREAM_NAMES).map(([name, upstream]) => [upstream, name] as const),
]);

/** The model behind a name of any kind, in any case: ours, upstream's, an alias. Undefined for a name of none. */
export function modelNamed(name: string): string | undefined {
  const key = name.trim().toLowerCase();
  return ALIASES.get(key) ?? MODELS.find((model) => model.name === key)?.name;
}

/** The typed-decision sets, by the ids of their questions. */
const WORKFLOWS: Readonly<Record<string, ReadonlySet<string>>> = {
  agent_trace_observability: new Set(['action', 'needs_review', 'outcome', 'risk', 'urgency']),
  customer_service: new Set(['action', 'category', 'churn_risk', 'needs_human', 'urgency']),
  invoice_processing: new Set(['discrepancy_severity', 'disposition', 'duplicate', 'matches_order', 'urgency']),
  security_incidents: new Set(['credential_compromise', 'disposition', 'severity', 'true_positive', 'urgency']),
};

/** The typed-decision set whose question ids are exactly these, in any order. */
export function workflowOf(questions: JsonValue): string | null {
  if (!(questions instanceof Map)) return null;
  const ids = [...questions.keys()];
  const found = Object.entries(WORKFLOWS).find(([, set]) => set.size === ids.length && ids.every((id) => set.has(id)));
  return found?.[0] ?? null;
}

/** Upstream's routing block for a model of the registry. Throws UnsupportedModelError for any other. */
export function routingBlock(
  model: string,
  reason: string,
  found: { readonly detection?: Detection; readonly workflow?: string | null } = {},
): RoutingBlock {
  const { name, repo } = findModel(model);
  const { detection = null, workflow = null } = found;
  return { model: UPSTREAM_NAMES[name] ?? name, repo, reason, detection, workflow };
}

/** The block as JSON for printing. */
export function routingToJson(block: RoutingBlock): JsonObject {
  return fromPlain(block) as JsonObject;
}
