import { type Gauge, Metrics } from './metrics.js';
import type { PoolStatus } from './pool.js';
import type { AnswerFacts } from './protocol.js';

/** What a finished request looked like. */
export interface Served {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
}

/** The server's metrics by name: the only place that knows them. */
export class Meter {
  readonly #metrics = new Metrics();

  served({ route, method, status, seconds }: Served): void {
    this.#metrics.count('laya_requests_total', 'Requests by route and status.', {
      route,
      method,
      status: String(status),
    });
    this.#metrics.observe('laya_request_seconds', 'From the header to the end of the response.', { route }, seconds);
  }

  refused(code: string): void {
    this.#metrics.count('laya_refused_total', 'Requests that were not answered, by code.', { code });
  }

  answered({ model, device, questions, inputTokens, truncated, latencyMs, queueMs }: AnswerFacts): void {
    const labels = { model, device };
    this.#metrics.count('laya_questions_total', 'Questions answered.', labels, questions);
    this.#metrics.count('laya_input_tokens_total', 'Tokens read by the model.', labels, inputTokens);
    if (truncated) this.#metrics.count('laya_truncated_total', 'Answers to a state that was cut.', labels);
    this.#metrics.observe('laya_answer_seconds', 'Inference of one request.', labels, latencyMs / 1000);
    this.#metrics.observe('laya_queue_seconds', 'Wait for a worker.', {}, queueMs / 1000);
  }

  workerLost(): void {
    this.#metrics.count('laya_workers_lost_total', 'Workers that ended unasked.', {});
  }

  text(status: PoolStatus): string {
    return this.#metrics.text([
      { name: 'laya_queued_jobs', help: 'Jobs that wait for a worker.', value: status.queued },
      { name: 'laya_running_jobs', help: 'Jobs in a worker.', value: status.running },
      { name: 'laya_workers', help: 'Workers of the pool.', value: status.workers },
      ...Array.from(status.models, ([model, state]): Gauge => {
        const help = '1 when the model can answer.';
        return { name: 'laya_model_ready', help, labels: { model }, value: state.status === 'ready' ? 1 : 0 };
      }),
      { name: 'process_resident_memory_bytes', help: 'Resident memory.', value: process.memoryUsage.rss() },
      { name: 'laya_uptime_seconds', help: 'Since the process started.', value: process.uptime() },
    ]);
  }
}
