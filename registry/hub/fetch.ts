import type { ProxySettings } from './settings.js';

/** The part of `fetch` that is used, so that undici's, Node's and a test's fit. */
export type HubFetch = (url: string, init: HubRequest) => Promise<HubReply>;

export interface HubRequest {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly headers: Record<string, string>;
  readonly redirect: 'manual';
  readonly signal: AbortSignal;
  /** A stream goes with a Content-Length header. */
  readonly body?: string | AsyncIterable<Uint8Array>;
  readonly duplex?: 'half';
}

export interface HubReply {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: ReadableBody | null;
}

export interface ReadableBody {
  getReader(): { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>; cancel(): Promise<void> };
  cancel(): Promise<void>;
}

/** A reply with status 200 or 206, after a request with a body from 200 to 204. Read it to its end, or cancel it. */
export interface HubResponse {
  readonly status: number;
  readonly headers: HubReply['headers'];
  /** The next chunk, or undefined at the end of the body. Rejects with a HubError. */
  next(): Promise<Uint8Array | undefined>;
  cancel(): Promise<void>;
}

/** Node's own fetch, or undici's through one proxy agent when a proxy is set: Node 20's ignores proxy variables. */
export async function hubFetch(proxy: ProxySettings | undefined): Promise<HubFetch> {
  if (proxy === undefined) return (url, init) => globalThis.fetch(url, init);
  const { EnvHttpProxyAgent, fetch } = await import('undici');
  const { http: httpProxy, https: httpsProxy, none: noProxy } = proxy;
  const dispatcher = new EnvHttpProxyAgent({ httpProxy, httpsProxy, noProxy });
  return (url, init) => fetch(url, { ...init, dispatcher });
}
