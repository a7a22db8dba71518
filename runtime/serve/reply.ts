import type { ServerResponse } from 'node:http';
import { type HttpError, RefusedError } from './errors.js';

/** Sent with every response. */
export const COMMON_HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

const JSON_TYPE = 'application/json';

/** A refusal as a body: `detail` as other servers of this protocol have it, and what a program needs beside it. */
function errorBody(error: HttpError, requestId: string): string {
  const { where, expected, hint, message } = error;
  const isQuestion = error instanceof RefusedError;
  const code = isQuestion ? error.reason : error.code;
  const detail = isQuestion && where !== undefined ? `${where}: ${message}` : message;
  const facts = error.status < 500 ? { where, expected, hint } : {};
  return JSON.stringify({ detail, code, request_id: requestId, ...facts });
}

function errorHeaders(error: HttpError, requestId: string): Record<string, string> {
  const headers: Record<string, string> = { ...COMMON_HEADERS, 'Content-Type': JSON_TYPE, 'X-Request-Id': requestId };
  if (error.retryAfter !== undefined) headers['Retry-After'] = String(error.retryAfter);
  if (error.code === 'KEY_WRONG') headers['WWW-Authenticate'] = 'Bearer';
  if (error.code === 'METHOD_UNKNOWN') headers.Allow = String(error.expected);
  return headers;
}

export function errorResponse(error: HttpError, requestId: string): Response {
  return new Response(errorBody(error, requestId), { status: error.status, headers: errorHeaders(error, requestId) });
}

/** Answers a request that never reaches the routes, and ends its connection. */
export function refuse(outgoing: ServerResponse, error: HttpError, requestId: string): void {
  outgoing.shouldKeepAlive = false;
  outgoing.writeHead(error.status, errorHeaders(error, requestId)).end(errorBody(error, requestId));
}

export function jsonResponse(
  body: string,
  requestId: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const all = { ...COMMON_HEADERS, 'Content-Type': JSON_TYPE, 'X-Request-Id': requestId, ...headers };
  return new Response(body, { headers: all });
}
