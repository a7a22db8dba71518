import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { isSystemError } from '../../schemas/errors.js';
import { type Bindings, createApp, routeName } from './app.js';
import { ServeError } from './errors.js';
import { guard } from './guard.js';
import { keyCheck } from './key.js';
import { SERVER_LIMITS, type ServerLimits } from './limits.js';
import type { Log } from './log.js';
import { isLoopback } from './loopback.js';
import type { Meter } from './meter.js';
import { loadPage } from './page.js';
import type { Answerer } from './pool.js';
import { refuse } from './reply.js';
import type { Offer } from './target.js';

export interface ServerOptions {
  readonly answerer: Answerer;
  readonly offer: Offer;
  readonly device: string;
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly allowRemote: boolean;
  readonly apiKey: string | undefined;
  readonly version: string;
  readonly log: Log;
  readonly meter: Meter;
  readonly limits?: Partial<ServerLimits>;
}

export interface RunningServer {
  readonly url: string;
  /**
   * Takes no new requests, lets those in progress finish, and closes. Requests that are not done within the limit are
   * cut; resolves to false then.
   */
  stop(): Promise<boolean>;
}

/** Longest wait between two looks at slow connections. */
const CHECK_MS = 1000;

/**
 * Starts the HTTP server. Throws ServeError BIND_REFUSED for an address that other machines reach unless that was
 * allowed, API_KEY_MISSING for such an address without a key, API_KEY_INVALID, LISTEN_FAILED.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const isKey = keyCheck(options.apiKey);
  const loopbackOnly = isLoopback(options.host);
  checkExposure(options, loopbackOnly);
  const limits = { ...SERVER_LIMITS, ...options.limits };
  const openapi = await readFile(new URL('../../schemas/generated/openapi.json', import.meta.url), 'utf8');
  const app = createApp({ ...options, isKey, limits, page: await loadPage(), openapi });
  const ids = new WeakMap<object, string>();
  const route = getRequestListener(
    (request, env) => app.fetch(request, { ...(env as Bindings), requestId: ids.get(env.incoming) ?? '' }),
    { overrideGlobalObjects: false },
  );
  const inFlight = new Set<ServerResponse>();
  let stopping = false;
  const server = newServer(limits);
  server.on('request', (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const requestId = requestIdOf(incoming);
    ids.set(incoming, requestId);
    inFlight.add(outgoing);
    outgoing.on('close', () => inFlight.delete(outgoing));
    record(incoming, outgoing, requestId, options);
    const refusal = guard(incoming, { loopbackOnly, isStopping: () => stopping });
    if (refusal === undefined) void route(incoming, outgoing);
    else {
      options.meter.refused(refusal.code);
      refuse(outgoing, refusal, requestId);
    }
  });
  const url = await listen(server, options);
  const stop = (): Promise<boolean> => {
    stopping = true;
    for (const outgoing of inFlight) outgoing.shouldKeepAlive = false;
    return drain(server, limits.drainMs);
  };
  return { url, stop };
}

/** Other machines get in only where that was asked for, and only with a key. */
function checkExposure({ host, allowRemote, apiKey }: ServerOptions, loopback: boolean): void {
  if (loopback) return;
  if (!allowRemote)
    throw new ServeError('BIND_REFUSED', `${host} is not a loopback address`, {
      where: '--host',
      expected: 'localhost, 127.0.0.1 or ::1',
      found: host,
      hint: 'to serve other machines add --allow-remote and set LAYA_API_KEY',
    });
  if (!apiKey)
    throw new ServeError('API_KEY_MISSING', `${host} is reached by other machines, and there is no key`, {
      where: 'LAYA_API_KEY',
      hint: 'set LAYA_API_KEY',
    });
}

function newServer(limits: ServerLimits): Server {
  const server = createServer({
    // A request without a Host is refused like one with a wrong one.
    requireHostHeader: false,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.headersMs + limits.bodyMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, limits.headersMs),
  });
  server.maxConnections = limits.connections;
  return server;
}

/** A client's own id if it is a plain one, so that its logs and ours can be joined. */
function requestIdOf({ headers }: IncomingMessage): string {
  const id = headers['x-request-id'];
  return typeof id === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(id) ? id : randomUUID();
}

/** Counts and logs a request once its connection or response has ended. */
function record(incoming: IncomingMessage, outgoing: ServerResponse, id: string, { log, meter }: ServerOptions): void {
  const started = performance.now();
  const route = routeName(incoming.url ?? '');
  const method = METHODS.includes(incoming.method ?? '') ? incoming.method! : 'other';
  outgoing.on('close', () => {
    const ms = performance.now() - started;
    const status = outgoing.writableFinished ? outgoing.statusCode : 499;
    meter.served({ route, method, status, seconds: ms / 1000 });
    log('info', 'request', { request_id: id, method, route, status, ms: Math.round(ms * 100) / 100 });
  });
}

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'];

async function listen(server: Server, { host, port, allowRemote }: ServerOptions): Promise<string> {
  try {
    server.listen({ host, port });
    await once(server, 'listening');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServeError('LISTEN_FAILED', `can't listen on ${host}, port ${port}: ${error.code}`, {
      where: '--port',
      hint: 'choose another address or port',
      cause: error,
    });
  }
  const { address, family, port: bound } = server.address() as AddressInfo;
  if (!allowRemote && !isLoopback(address)) {
    server.close();
    throw new ServeError('BIND_REFUSED', `${host} is ${address} here, which is not a loopback address`, {
      where: '--host',
      hint: 'use 127.0.0.1',
    });
  }
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`;
}

/** Closes the server when the last request is done; cuts what is left after the limit, and gives false then. */
async function drain(server: Server, ms: number): Promise<boolean> {
  let whole = true;
  const timer = setTimeout(() => {
    whole = false;
    server.closeAllConnections();
  }, ms);
  const closed = once(server, 'close');
  server.close();
  server.closeIdleConnections();
  await closed;
  clearTimeout(timer);
  return whole;
}
