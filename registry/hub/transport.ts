import { inspect } from 'node:util';
import { LayaError } from '../../schemas/errors.js';
import { HubError } from './errors.js';
import type { HubFetch, HubReply, HubResponse } from './fetch.js';
import { displayUrl, parseBody, readText, redirectTarget, statusError } from './reply.js';
import { type Clock, type RetryPolicy, systemClock, withRetries } from './retry.js';
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

/** What is sent beside the URL; without a method it is a GET. */
export interface HubMessage {
  readonly method?: 'GET' | 'POST' | 'PUT';
  readonly headers?: Readonly<Record<string, string>>;
  /** Made anew for each redirect. */
  readonly body?: () => string | AsyncIterable<Uint8Array>;
}

const MAX_REDIRECTS = 5;
const MAX_REPLY_BYTES = 16 << 20;

/**
 * Requests to one hub. The token goes to the endpoint's own origin only, whatever redirects say. With `offline`
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

  /** True once the caller's signal was aborted. */
  get isStopped(): boolean {
    return this.options.signal?.aborted === true;
  }

  /** A GET request, like `request`. */
  get(start: URL, headers: Readonly<Record<string, string>> = {}): Promise<HubResponse> {
    return this.request(start, { headers });
  }

  /**
   * One request, following up to five redirects; not repeated.
   *
   * @throws HubError; the signal's reason when it was aborted
   */
  async request(start: URL, message: HubMessage): Promise<HubResponse> {
    this.refuseOffline(start);
    const watchdog = new Watchdog(this.options.inactivityMs ?? 30_000, displayUrl(start), this.options.signal);
    try {
      let url = start;
      for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
        const reply = await watchdog.guard(this.send(url, message, watchdog));
        const follows = message.body ? [307, 308] : [301, 302, 303, 307, 308];
        if (!follows.includes(reply.status))
          return await this.open(reply, url, message.body ? [200, 201, 202, 204] : [200, 206], watchdog);
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
   * Posts a JSON document, or lines of them, and gives the JSON of the reply; undefined for an empty one. Not repeated.
   *
   * @throws HubError as `json`
   */
  async post(
    url: URL,
    body: string,
    type = 'application/json',
    more: Readonly<Record<string, string>> = {},
  ): Promise<unknown> {
    const headers = { accept: type.endsWith('ndjson') ? 'application/json' : type, ...more, 'content-type': type };
    const response = await this.request(url, { method: 'POST', headers, body: () => body });
    const text = await readText(response, MAX_REPLY_BYTES, url);
    return text.trim() === '' ? undefined : parseBody(text, url);
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

  private send(url: URL, { method = 'GET', headers, body }: HubMessage, watchdog: Watchdog): Promise<HubReply> {
    const { token, endpoint } = this.settings;
    const own = token !== undefined && url.origin === new URL(endpoint).origin;
    // Compressed transfer would hide a body's real length.
    const all: Record<string, string> = { 'user-agent': 'laya-artifacts', 'accept-encoding': 'identity', ...headers };
    if (own) all.authorization = `Bearer ${token}`;
    const content = body?.();
    const sent = typeof content === 'object' ? { body: watched(content, watchdog), duplex: 'half' as const } : {};
    const text = typeof content === 'string' ? { body: content } : {};
    const { signal } = watchdog;
    return this.options.fetch(url.href, { method, headers: all, redirect: 'manual', signal, ...text, ...sent });
  }

  /** Checks the status and hands out the body. Errors of the body are explained like those of the request. */
  private async open(reply: HubReply, url: URL, allowed: readonly number[], watchdog: Watchdog): Promise<HubResponse> {
    if (!allowed.includes(reply.status)) {
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
    const told = String(cause?.code ?? cause?.message ?? (error as Error)?.message ?? error).slice(0, 200);
    const { proxy, token } = this.settings;
    // A library may quote a header: neither the token nor its beginning gets further (fault F17).
    const isSecret = token !== undefined && inspect(error, { depth: 8 }).includes(token.slice(0, 8));
    const reason = isSecret ? 'the request could not be made' : told;
    return new HubError('HUB_UNREACHABLE', `can't reach ${url.origin}: ${reason}`, {
      where: displayUrl(url),
      found: reason,
      hint: proxy
        ? `the proxy in ${proxy.variable} was used: check it, or exempt the host with NO_PROXY`
        : 'check the endpoint (HF_ENDPOINT) and whether a proxy is needed (HTTPS_PROXY)',
      transient: true,
      ...(isSecret ? {} : { cause: error }),
    });
  }
}

/** The same bytes; each piece that is taken counts as a sign of life. */
async function* watched(content: AsyncIterable<Uint8Array>, watchdog: Watchdog): AsyncGenerator<Uint8Array> {
  for await (const piece of content) {
    watchdog.sent();
    yield piece;
  }
}
