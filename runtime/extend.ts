import type { JsonObject, JsonValue } from '../schemas/json.js';

/** A request, as far as a router or a shortlist looks at it. */
export interface Asked {
  readonly context: unknown;
  readonly questions: unknown;
}

/** A result, as far as a router or a shortlist extends it. */
export interface Answered {
  readonly runtime: object;
  toJson(): JsonObject;
}

/** Anything that answers requests as `Laya` does; further arguments of `predict` are passed on. */
export interface Predictor<Q extends Asked, A extends Answered, Rest extends readonly unknown[] = []> {
  predict(request: Q, ...rest: Rest): Promise<A>;
  embed?(texts: readonly string[]): Promise<readonly ArrayLike<number>[]>;
  info?(): object;
  warmUp?(): Promise<void>;
  waitForAne?(signal?: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/**
 * The result with more in it: `blocks`, which its JSON has as `json` before `runtime`, and further fields of `runtime`,
 * strings all of them.
 */
export function extendResult<A extends Answered, B extends object, R extends Readonly<Record<string, string>>>(
  result: A,
  { blocks, json, runtime }: { readonly blocks: B; readonly json: JsonObject; readonly runtime: R },
): A & B & { readonly runtime: R } {
  const toJson = (): JsonObject => {
    const extended = result.toJson();
    const printed = extended.get('runtime');
    extended.delete('runtime');
    for (const [key, value] of json) extended.set(key, value);
    const fields = printed instanceof Map ? printed : [];
    return extended.set('runtime', new Map<string, JsonValue>([...fields, ...Object.entries(runtime)]));
  };
  return { ...result, ...blocks, runtime: { ...result.runtime, ...runtime }, toJson };
}
