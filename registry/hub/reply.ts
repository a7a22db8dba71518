import { HubError } from './errors.js';
import type { HubReply, HubResponse } from './fetch.js';
import { retryAfter } from './retry.js';

/** A URL as it may stand in a message: without query, fragment and credentials, which can be secrets. */
export const displayUrl = (url: URL): string => url.origin + url.pathname;

/** Where a redirect leads. Throws HubError HUB_REDIRECT. */
export function redirectTarget(from: URL, reply: HubReply): URL {
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

/** What a status means that was not hoped for. */
export function statusError(reply: HubReply, url: URL, now: number, hadToken: boolean): HubError {
  const { status, headers } = reply;
  const named = headers.get('x-error-code') ?? '';
  const found = /^[A-Za-z]{1,40}$/.test(named) ? `${status} ${named}` : status;
  const facts = { where: displayUrl(url), found };
  if (status === 401 || status === 403) {
    const hint = hadToken ? 'check that HF_TOKEN may read this repository' : 'set HF_TOKEN to a token that may read it';
    return new HubError('HUB_ACCESS', `${url.host} refuses access (${found})`, { ...facts, hint });
  }
  if (status === 404) return new HubError('HUB_NOT_FOUND', `${url.host} doesn't have it (${found})`, facts);
  if (status === 409) return new HubError('HUB_EXISTS', `${url.host} has it already (${found})`, facts);
  if (status === 412) return new HubError('HUB_CONFLICT', 'the branch moved meanwhile', facts);
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

/** The whole body as text. Throws HubError HUB_LISTING when it is larger than `maxBytes`. */
export async function readText(response: HubResponse, maxBytes: number, url: URL): Promise<string> {
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

/** The JSON of a body. Throws HubError HUB_HTML or HUB_LISTING. */
export function parseBody(text: string, url: URL): unknown {
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
