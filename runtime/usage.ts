import { fromPlain, type JsonObject, type JsonValue } from '../schemas/json.js';
import type { Prepared } from './prompt.js';

/** What the request took, with upstream's field names; empty requests have the first two only. */
export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: 0;
  readonly state_tokens?: number;
  /** Of the row that lost the most. */
  readonly state_tokens_dropped?: number;
  readonly truncated?: boolean;
  /** Ids of the questions that did not see the whole state. */
  readonly truncated_questions?: readonly string[];
  /** Questions with options that the cut made equal, by id; without a prototype, absent when there is none. */
  readonly options?: Readonly<Record<string, CollapsedUsage>>;
}

interface CollapsedUsage {
  readonly total: number;
  readonly distinct: number;
  readonly tokens_per_option: number | null;
}

/** The `usage` block of an answer. */
export function usageOf({ questions, rows, inputTokens }: Prepared): Usage {
  const [first] = rows;
  if (first === undefined) return { input_tokens: 0, output_tokens: 0 };
  const dropped = Math.max(...rows.map((row) => row.stateTokensDropped));
  const cut = questions.filter((_, index) => rows[index]!.stateTokensDropped > 0);
  const usage: Usage = {
    input_tokens: inputTokens,
    output_tokens: 0,
    state_tokens: first.stateTokens,
    state_tokens_dropped: dropped,
    truncated: dropped > 0,
    truncated_questions: cut.map((question) => question.id),
  };
  const options: Record<string, CollapsedUsage> = Object.create(null);
  for (const [index, { collapsedOptions }] of rows.entries()) {
    if (collapsedOptions === null) continue;
    const { total, distinct, tokensPerOption } = collapsedOptions;
    options[questions[index]!.id] = { total, distinct, tokens_per_option: tokensPerOption };
  }
  return Object.keys(options).length === 0 ? usage : { ...usage, options };
}

/** The `usage` block as JSON for printing, with the questions under `options` in the request's order. */
export function usageToJson({ questions }: Prepared, usage: Usage): JsonObject {
  const json = fromPlain(usage) as JsonObject;
  const { options } = usage;
  if (options === undefined) return json;
  const collapsed = questions.filter(({ id }) => Object.hasOwn(options, id));
  return json.set('options', new Map<string, JsonValue>(collapsed.map(({ id }) => [id, fromPlain(options[id])])));
}
