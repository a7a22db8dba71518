import { LayaError } from '../../schemas/errors.js';
import { HubError } from './errors.js';
import type { HubFetch, HubReply } from './fetch.js';
import { type Clock, type RetryPolicy, retryAfter, systemClock, withRetries } from './retry.js';
import type { HubSettings } from './settings.js';
import { Watchdog } from './watchdog.js';

export interface TransportOptions {
  readonly fetch: HubFetch;
  readonly retries?: number;
  readonly backoffMs?: number;
  readonly longestWaitMs?: number;
  /** Longest silence before headers and between two chunks of a body. */
  readonly inactivityMs?: number;
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
}

/** A reply with status 200 or 206. Read it to its end, or cancel it. */
export interface HubResponse {
  readonly status: number;
  readonly headers: HubReply['headers'];
  /** The next chunk, or undefined at the end of the body. Rejects with a HubError. */
  next(): Promise<Uint8Array | undefined>;
  cancel(): Promise<void>;
}

const MAX_REDIRECTS = 5;

/** A URL as it may stand in a message: without query, fragment and credentials, which can be secrets. */
export const displayUrl = (url: URL): string => url.origin + url.pathname;

/**
 * GET requests to one hub. The token goes to the endpoint's own origin only, whatever redirects say. With `offline`
 * set, every request fails before a socket is opened.
 */
export class HubTransport {
  private readonly settings: HubSettings;
  private readonly options: TransportOptions;
  private readonly policy: RetryPolicy;

  constructor(settings: HubSettings, options: TransportOptions) {
    const { retries = 3, backoffMs = 500, longestWaitMs = 300_000, clock = systemClock, signal } = options;
    this.settings = settings;
    this.options = options;
    this.policy = { retries, backoffMs, longestWaitMs, clock, ...(signal ? { signal } : {}) };
  }

  /** A URL below the endpoint; every segment is percent-encoded, "/" inside a segment too. */
  url(segments: readonly string[], query = ''): URL {
    return new URL(`${this.settings.endpoint}/${segments.map(encodeURIComponent).join('/')}${query}`);
  }

  /** Repeats `attempt` while it fails in a way that may pass (429, 5xx, connection, silence), as `withRetries` says. */
  retrying<T>(attempt: () => Promise<T>, advanced?: () => boolean): Promise<T> {
    return withRetries(attempt, this.policy, advanced);
  }

  /**
   * One request, following up to five redirects; not repeated.
   *
   * @throws HubError; the signal's reason when it was aborted
   */
  async get(start: URL, headers: Readonly<Record<string, string>> = {}): Promise<HubResponse> {
    this.refuseOffline(start);
    const watchdog = new Watchdog(this.options.inactivityMs ?? 30_000, displayUrl(start), this.options.signal);
    try {
      let url = start;
      for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
        const reply = await watchdog.guard(this.send(url, headers, watchdog.signal));
        if (![301, 302, 303, 307, 308].includes(reply.status)) return await this.open(reply, url, watchdog);
        await reply.body?.cancel();
        url = redirectTarget(url, reply);
      }
      throw new HubError('HUB_REDIRECT', `more than ${MAX_REDIRECTS} redirects`, { where: displayUrl(start) });
    } catch (error) {
      watchdog.release();
      throw this.explain(error, start);
    }
  }

  /**
   * A JSON document, repeated as `retrying` says, with the URL of its next page when it has one.
   *
   * @throws HubError; HUB_HTML or HUB_LISTING when the body is not JSON or larger than `maxBytes`
   */
  async json(url: URL, maxBytes: number): Promise<{ value: unknown; next?: URL }> {
    return await this.retrying(async () => {
      const response = await this.get(url);
      const text = await readText(response, maxBytes, url);
      const next = /<([^>]+)>\s*;\s*rel="?next"?/.exec(response.headers.get('link') ?? '')?.[1];
      const value = parseBody(text, url);
      return next !== undefined && URL.canParse(next, url.href) ? { value, next: new URL(next, url) } : { value };
    });
  }

  private refuseOffline(url: URL): void {
    const { offline } = this.settings;
    if (offline === undefined) return;
    throw new HubError('OFFLINE', `${offline} forbids the network`, {
      where: displayUrl(url),
      hint: 'run once without it to fill the cache',
    });
  }

  private send(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HubReply> {
    const { token, endpoint } = this.settings;
    const own = token !== undefined && url.origin === new URL(endpoint).origin;
    // Compressed transfer would hide a body's real length.
    const all: Record<string, string> = { 'user-agent': 'laya-artifacts', 'accept-encoding': 'identity', ...headers };
    if (own) all.authorization = `Bearer ${token}`;
    return this.options.fetch(url.href, { method: 'GET', headers: all, redirect: 'manual', signal });
  }

  /** Checks the status and hands out the body. Errors of the body are explained like those of the request. */
  private async open(reply: HubReply, url: URL, watchdog: Watchdog): Promise<HubResponse> {
    if (reply.status !== 200 && reply.status !== 206) {
      await reply.body?.cancel();
      throw statusError(reply, url, this.policy.clock.now(), this.settings.token !== undefined);
    }
    const reader = reply.body?.getReader();
    const next = async () => {
      try {
        const chunk = reader ? await watchdog.guard(reader.read()) : { done: true, value: undefined };
        if (chunk.done) watchdog.release();
        return chunk.done ? undefined : chunk.value;
      } catch (error) {
        watchdog.release();
        throw this.explain(error, url);
      }
    };
    const cancel = async () => {
      watchdog.release();
      await reader?.cancel().catch(() => undefined);
    };
    return { status: reply.status, headers: reply.headers, next, cancel };
  }

  private explain(error: unknown, url: URL): unknown {
    if (this.options.signal?.aborted) return this.options.signal.reason;
    if (error instanceof LayaError) return error;
    const cause = (error as { cause?: { code?: unknown; message?: unknown } })?.cause;
    const reason = String(cause?.code ?? cause?.message ?? (error as Error)?.message ?? error).slice(0, 200);
    const { proxy } = this.settings;
    return new HubError('HUB_UNREACHABLE', `can't reach ${url.origin}: ${reason}`, {
      where: displayUrl(url),
      found: reason,
      hint: proxy
        ? `the proxy in ${proxy.variable} was used: check it, or exempt the host with NO_PROXY`
        : 'check the endpoint (HF_ENDPOINT) and whether a proxy is needed (HTTPS_PROXY)',
      transient: true,
      cause: error,
    });
  }
}

function redirectTarget(from: URL, reply: HubReply): URL {
  const location = reply.headers.get('location') ?? '';
  const refuse = (found: string): never => {
    throw new HubError('HUB_REDIRECT', `status ${reply.status} leads nowhere: ${found}`, {
      where: displayUrl(from),
      expected: 'a Location that is an http or https URL, and https after https',
      found,
      hint: 'a sign-in page or proxy may answer in the place of the hub',
    });
  };
  if (location === '' || !URL.canParse(location, from.href)) return refuse('no valid Location');
  const target = new URL(location, from);
  const safe = target.protocol === 'https:' || (target.protocol === 'http:' && from.protocol === 'http:');
  return safe ? target : refuse(`${target.protocol}//${target.host}`);
}

function statusError(reply: HubReply, url: URL, now: number, hadToken: boolean): HubError {
  const { status, headers } = reply;
  const named = headers.get('x-error-code') ?? '';
  const found = /^[A-Za-z]{1,40}$/.test(named) ? `${status} ${named}` : status;
  const facts = { where: displayUrl(url), found };
  if (status === 401 || status === 403) {
    const hint = hadToken ? 'check that HF_TOKEN may read this repository' : 'set HF_TOKEN to a token that may read it';
    return new HubError('HUB_ACCESS', `${url.host} refuses access (${found})`, { ...facts, hint });
  }
  if (status === 404) return new HubError('HUB_NOT_FOUND', `${url.host} doesn't have it (${found})`, facts);
  const wait = retryAfter(headers, now);
  const later = { ...facts, transient: true, ...(wait === undefined ? {} : { retryAfter: wait }) };
  if (status === 429) {
    const told = wait === undefined ? '' : ` and asks to wait ${Math.ceil(wait / 1000)} s`;
    const hint = hadToken
      ? 'try again later'
      : 'try again later, or set HF_TOKEN: signed-in requests have a larger quota';
    return new HubError('HUB_RATE_LIMITED', `${url.host} limits the rate of requests${told}`, { ...later, hint });
  }
  if (status >= 500) return new HubError('HUB_SERVER', `${url.host} failed (${found})`, later);
  return new HubError('HUB_STATUS', `${url.host} answered ${found}`, { ...facts, expected: '200' });
}

async function readText(response: HubResponse, maxBytes: number, url: URL): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (let chunk = await response.next(); chunk; chunk = await response.next()) {
    chunks.push(chunk);
    size += chunk.length;
    if (size <= maxBytes) continue;
    await response.cancel();
    throw new HubError('HUB_LISTING', `the reply is larger than ${maxBytes} bytes`, { where: displayUrl(url) });
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseBody(text: string, url: URL): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const isPage = /^\s*<(!doctype|html)/i.test(text);
    throw new HubError(isPage ? 'HUB_HTML' : 'HUB_LISTING', 'the hub was asked for JSON and sent something else', {
      where: displayUrl(url),
      expected: 'JSON',
      found: isPage ? 'a web page' : `${text.length} characters that are not JSON`,
      hint: 'check the endpoint (HF_ENDPOINT); a sign-in page or proxy may answer in its place',
      cause,
    });
  }
}
