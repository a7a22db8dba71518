import { jsonLog } from '../../../runtime/serve/log.js';
import { Meter } from '../../../runtime/serve/meter.js';
import type { Answerer, PoolStatus, Question } from '../../../runtime/serve/pool.js';
import { type RunningServer, type ServerOptions, startServer } from '../../../runtime/serve/server.js';

const facts = {
  model: 'laya-tiny',
  device: 'cpu',
  questions: 1,
  inputTokens: 1,
  truncated: false,
  latencyMs: 1,
  queueMs: 0,
};

/** Answers `{"answer":"<request id>"}`, or as the test says. */
class StandIn implements Answerer {
  readonly asked: Question[] = [];
  readonly signals: AbortSignal[] = [];
  respond: (question: Question) => Promise<string> = async ({ requestId }) => JSON.stringify({ answer: requestId });

  async ask(question: Question, signal: AbortSignal) {
    this.asked.push(question);
    this.signals.push(signal);
    return { body: await this.respond(question), facts };
  }

  status(): PoolStatus {
    const ane = { status: 'unavailable', reason: 'cpu_requested' } as const;
    const ready = { status: 'ready', device: 'cpu', reason: 'cpu_requested', revision: 'r', ane } as const;
    return { models: new Map([['laya-tiny', ready]]), queued: 0, running: 0, workers: 1, restarts: 0 };
  }
}

export interface Started extends RunningServer {
  readonly standIn: StandIn;
  readonly lines: string[];
}

/** The real HTTP server over a stand-in for the pool. */
export async function startStandIn(change: Partial<ServerOptions> = {}): Promise<Started> {
  const [standIn, lines]: [StandIn, string[]] = [new StandIn(), []];
  const log = jsonLog(
    'debug',
    (line) => lines.push(line),
    () => new Date(0),
  );
  const server = await startServer({
    ...{ answerer: standIn, offer: { models: ['laya-tiny'], defaultModel: 'laya-tiny' }, device: 'auto' },
    ...{ host: '127.0.0.1', port: 0, allowRemote: false, apiKey: undefined, version: '0', log, meter: new Meter() },
    ...change,
  });
  return { ...server, standIn, lines };
}
