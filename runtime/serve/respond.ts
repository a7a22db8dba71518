import { fromPlain, type JsonObject, type JsonValue, stringifyJson } from '../../schemas/json.js';
import type { Result } from '../request.js';
import type { AnswerFacts, Job } from './protocol.js';
import type { Routed } from './route.js';

/** What every server of this protocol calls its model; `routing` and `laya_artifacts` tell which checkpoint it was. */
const WIRE_MODEL = 'laya-rl-agent';

/** The response body: answers and usage byte for byte as `predict` gives them, then who answered and how. */
export function responseBody(result: Result, { routing, modelRouting }: Routed, job: Job, queueMs: number): string {
  const json = result.toJson();
  const { runtime } = result;
  const own: Record<string, unknown> = {
    checkpoint: runtime.model,
    model_revision: runtime.model_revision,
    device: runtime.device,
    backend: runtime.backend,
    graph: runtime.graph,
    artifact_revision: runtime.artifact_revision,
    routing_reason: runtime.routing_reason,
    device_reason: runtime.device_reason,
    model_routing: modelRouting,
    request_id: job.requestId,
    truncated: runtime.truncated,
    sequence_length: runtime.sequence_length,
    question_count: runtime.question_count,
    latency_ms: runtime.latency_ms,
    queue_wait_ms: Math.round(queueMs * 1000) / 1000,
  };
  const body: JsonObject = new Map<string, JsonValue>([
    ['model', WIRE_MODEL],
    ['answers', json.get('answers')!],
    ['usage', json.get('usage')!],
    ['routing', fromPlain(routing)],
    ['laya_artifacts', fromPlain(own)],
  ]);
  return stringifyJson(body);
}

export function factsOf({ runtime, usage }: Result, queueMs: number): AnswerFacts {
  return {
    model: runtime.model,
    device: runtime.device,
    questions: runtime.question_count,
    inputTokens: usage.input_tokens,
    truncated: runtime.truncated,
    latencyMs: runtime.latency_ms,
    queueMs,
  };
}
