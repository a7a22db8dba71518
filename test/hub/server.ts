import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Fault, type Reply, send, text } from './replies.js';
import { Repository } from './repos.js';
import { contentRoutes, type HubRequest, type HubState, type Route, readRoutes } from './routes.js';
import { storeRoutes, writeRoutes } from './write-routes.js';

/** A request that arrived, in order. */
export interface Arrival extends HubRequest {
  /** Which of the two origins it came to. */
  readonly at: 'hub' | 'content';
}

interface Plan {
  readonly at: RegExp;
  readonly faults: Fault[];
  readonly always: boolean;
}

/**
 * A Hugging Face hub on 127.0.0.1, for tests: repositories with commits, the reading API that the official clients
 * use, the writing one, large files on a second origin, and faults on request.
 */
export class TestHub implements HubState {
  readonly repositories = new Map<string, Repository>();
  readonly arrivals: Arrival[] = [];
  pageSize = 1000;
  partSize = 1 << 30;
  private plans: Plan[] = [];
  private actions: { readonly at: RegExp; readonly run: () => void }[] = [];
  private readonly hub: Server;
  private readonly content: Server;

  private constructor() {
    const routes = [...readRoutes, ...writeRoutes];
    const stored = [...contentRoutes, ...storeRoutes];
    this.hub = createServer((request, response) => this.serve('hub', routes, request, response));
    this.content = createServer((request, response) => this.serve('content', stored, request, response));
  }

  static async start(): Promise<TestHub> {
    const hub = new TestHub();
    await Promise.all([listen(hub.hub), listen(hub.content)]);
    return hub;
  }

  /** The endpoint. */
  get url(): string {
    return address(this.hub);
  }

  /** Another host name than the hub's: official clients take equal names for the hub itself, whatever the port. */
  get contentUrl(): string {
    return address(this.content).replace('127.0.0.1', 'localhost');
  }

  repository(name: string): Repository {
    const found = this.repositories.get(name) ?? new Repository(name);
    this.repositories.set(name, found);
    return found;
  }

  /** The next requests whose "METHOD /path" matches meet these faults, one each, in order. */
  failNext(at: RegExp, ...faults: Fault[]): void {
    this.plans.push({ at, faults, always: false });
  }

  /** All requests whose "METHOD /path" matches meet this fault. */
  failAlways(at: RegExp, fault: Fault): void {
    this.plans.push({ at, faults: [fault], always: true });
  }

  /** Runs once, before the next request whose "METHOD /path" matches is answered: a branch that moves meanwhile. */
  before(at: RegExp, run: () => void): void {
    this.actions.push({ at, run });
  }

  /** Forgets faults, requests and repositories. */
  reset(): void {
    this.plans = [];
    this.actions = [];
    this.arrivals.length = 0;
    this.repositories.clear();
    this.pageSize = 1000;
    this.partSize = 1 << 30;
  }

  /** "METHOD /path" of what arrived, without queries. */
  log(): string[] {
    return this.arrivals.map(({ method, url }) => `${method} ${url.pathname}`);
  }

  async close(): Promise<void> {
    for (const server of [this.hub, this.content]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  private async serve(at: Arrival['at'], routes: readonly Route[], message: IncomingMessage, response: ServerResponse) {
    const { method = 'GET' } = message;
    const url = new URL(message.url ?? '/', at === 'hub' ? this.url : this.contentUrl);
    const headers = Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, String(value)]));
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk as Buffer);
    const request = { method, url, headers, body: Buffer.concat(chunks) };
    this.arrivals.push({ ...request, at });
    const line = `${method} ${url.pathname}`;
    this.runAction(line);
    const fault = this.takeFault(line);
    const reply = fault?.kind === 'refuse' ? text(fault.status, '', fault.headers) : this.tryAnswer(routes, request);
    send(response, reply, fault, method === 'HEAD');
  }

  private runAction(line: string): void {
    const found = this.actions.findIndex(({ at }) => at.test(line));
    if (found >= 0) this.actions.splice(found, 1)[0]?.run();
  }

  /** A request that no route understands is answered too. */
  private tryAnswer(routes: readonly Route[], request: HubRequest): Reply {
    try {
      return this.answer(routes, request);
    } catch (error) {
      return text(400, String(error));
    }
  }

  private answer(routes: readonly Route[], request: HubRequest): Reply {
    for (const { methods, path, answer } of routes) {
      const match = methods.includes(request.method) && path.exec(request.url.pathname);
      if (match) return answer(request, { ...match.groups }, this);
    }
    return text(404, `no route for ${request.method} ${request.url.pathname}`);
  }

  private takeFault(line: string): Fault | undefined {
    const plan = this.plans.find(({ at, faults }) => faults.length > 0 && at.test(line));
    return plan?.always ? plan.faults[0] : plan?.faults.shift();
  }
}

async function listen(server: Server): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
}

const address = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
