import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Context, Hono } from 'hono';
import { InvalidRequestError } from '../errors.js';
import { readAsk } from './ask.js';
import { readBody } from './body.js';
import { HttpError, RefusedError } from './errors.js';
import { type HealthFacts, healthBody, isReady, modelsBody, overallStatus } from './health.js';
import type { KeyCheck } from './key.js';
import { REQUEST_LIMITS, type ServerLimits } from './limits.js';
import type { Log } from './log.js';
import type { Meter } from './meter.js';
import type { Page } from './page.js';
import type { Answerer } from './pool.js';
import { COMMON_HEADERS, errorResponse, jsonResponse } from './reply.js';
import { type Offer, resolveTarget } from './target.js';

/** What the routes work with. */
export interface AppParts {
  readonly answerer: Answerer;
  readonly offer: Offer;
  readonly device: string;
  readonly isKey: KeyCheck;
  readonly limits: ServerLimits;
  readonly log: Log;
  readonly meter: Meter;
  readonly page: Page;
  readonly openapi: string;
  readonly version: string;
}

export interface Bindings {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly requestId: string;
}

type Call = Context<{ Bindings: Bindings }>;

/** The routes. Everything that is refused before them is in guard.ts. */
export function createApp(parts: AppParts): Hono<{ Bindings: Bindings }> {
  const app = new Hono<{ Bindings: Bindings }>();
  const systemOne = systemOneRoute(parts);
  const facts = (): HealthFacts => ({ ...parts, status: parts.answerer.status() });
  const mayKnow = (call: Call): boolean => parts.isKey(call.env.incoming.headers.authorization);
  const withKey = (route: (call: Call) => Response | Promise<Response>) => (call: Call) => {
    if (mayKnow(call)) return route(call);
    throw new HttpError('KEY_WRONG', 'invalid or missing bearer token');
  };
  const health = (call: Call): Response => {
    const body = mayKnow(call) ? healthBody(facts()) : JSON.stringify({ status: overallStatus(facts()) });
    return jsonResponse(body, call.env.requestId);
  };

  app.post('/v1/systemone', withKey(systemOne));
  app.get(
    '/v1/models',
    withKey((call) => jsonResponse(modelsBody(facts()), call.env.requestId)),
  );
  app.get(
    '/metrics',
    withKey((call) => metricsResponse(parts, call.env.requestId)),
  );
  app.get(
    '/openapi.json',
    withKey((call) => jsonResponse(parts.openapi, call.env.requestId)),
  );
  app.get('/health', health);
  app.get('/healthz', health);
  app.get('/ready', (call) => {
    const ready = isReady(facts());
    const response = jsonResponse(JSON.stringify({ ready }), call.env.requestId);
    return ready ? response : new Response(response.body, { status: 503, headers: response.headers });
  });
  app.get('/', () => new Response(parts.page.html, { headers: { ...parts.page.headers } }));
  app.all('*', (call) => {
    const allowed = METHODS[call.req.path];
    if (allowed === undefined) throw new HttpError('ROUTE_UNKNOWN', 'there is nothing at this path');
    throw new HttpError('METHOD_UNKNOWN', `use ${allowed}`, { expected: allowed });
  });
  app.onError((error, call) => {
    const { requestId } = call.env;
    const refusal = asHttpError(error, parts.log, requestId);
    parts.meter.refused(refusal.code);
    return errorResponse(refusal, requestId);
  });
  return app;
}

/** The methods of each path; also the names of routes in logs and metrics. */
const METHODS: Readonly<Record<string, string>> = {
  '/': 'GET',
  '/health': 'GET',
  '/healthz': 'GET',
  '/ready': 'GET',
  '/metrics': 'GET',
  '/openapi.json': 'GET',
  '/v1/models': 'GET',
  '/v1/systemone': 'POST',
};

/** The route a request line asks for, as logs and metrics name it: never a client's own text. */
export function routeName(url: string): string {
  const path = url.split('?', 1)[0]!;
  return Object.hasOwn(METHODS, path) ? path : 'other';
}

function systemOneRoute({ answerer, offer, limits, meter, log }: AppParts): (call: Call) => Promise<Response> {
  let pending = 0;
  return async ({ env: { incoming, outgoing, requestId } }) => {
    if (!isJson(incoming.headers['content-type']))
      throw new HttpError('TYPE_NOT_JSON', 'Content-Type must be application/json');
    if (pending >= limits.pending) throw new HttpError('BUSY', 'server busy, try again later');
    const gone = new AbortController();
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) gone.abort(GONE);
    });
    pending += 1;
    try {
      const body = await readBody(incoming, { bytes: REQUEST_LIMITS.bodyBytes, ms: limits.bodyMs });
      const target = resolveTarget(readAsk(body).model, offer);
      const { body: answer, facts } = await answerer.ask({ body, target, requestId }, gone.signal);
      meter.answered(facts);
      log('debug', 'answered', { request_id: requestId, ...facts });
      const ms = facts.latencyMs.toFixed(2);
      return jsonResponse(answer, requestId, { 'Server-Timing': `inference;dur=${ms}`, 'X-Inference-Time-Ms': ms });
    } finally {
      pending -= 1;
    }
  };
}

/** Made once: an abort without a reason makes an error with a stack each time. */
const GONE = new Error('the client left');

const isJson = (type: string | undefined): boolean =>
  type?.split(';', 1)[0]?.trim().toLowerCase() === 'application/json';

function metricsResponse({ answerer, meter }: AppParts, requestId: string): Response {
  const headers = { ...COMMON_HEADERS, 'Content-Type': 'text/plain; version=0.0.4', 'X-Request-Id': requestId };
  return new Response(meter.text(answerer.status()), { headers });
}

/** What a client may know of an error; the rest goes to the log. */
function asHttpError(error: unknown, log: Log, requestId: string): HttpError {
  if (error instanceof InvalidRequestError) return new RefusedError(error.code, error.message, error);
  const known = error instanceof HttpError;
  const cause = known ? error.cause : error;
  if (!known || error.status >= 500) {
    const detail = cause instanceof Error ? `${cause.name}: ${cause.message}` : undefined;
    const level = known && error.status === 503 ? 'warning' : 'error';
    log(level, 'not_answered', { request_id: requestId, code: known ? error.code : 'UNEXPECTED', cause: detail });
  }
  return known ? error : new HttpError('INFERENCE_FAILED', 'inference failed', { cause: error });
}
