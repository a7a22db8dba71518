import type { HubFetch } from '../hub/fetch.js';
import type { Environment } from '../paths.js';
import { SigningError } from './errors.js';

/** Gives a fresh identity token at each call. Throws SigningError. */
export type TokenSource = () => Promise<string>;

const AUDIENCE = 'sigstore';
const TIMEOUT_MS = 30_000;
const MAX_TOKEN = 64 << 10;

/**
 * Where the token comes from that says who signs: SIGSTORE_ID_TOKEN, else the CI service that ACTIONS_ID_TOKEN_REQUEST_URL
 * and _TOKEN name. Nothing is asked for yet. Throws SigningError IDENTITY_TOKEN_MISSING when the environment has neither.
 */
export function tokenSource(env: Environment, fetch: HubFetch, signal: AbortSignal): TokenSource {
  const given = env.SIGSTORE_ID_TOKEN?.trim();
  if (given) return async () => checkToken(given, 'SIGSTORE_ID_TOKEN');
  const [url, secret] = [env.ACTIONS_ID_TOKEN_REQUEST_URL?.trim(), env.ACTIONS_ID_TOKEN_REQUEST_TOKEN?.trim()];
  if (url && secret) return () => requestToken(url, secret, fetch, signal);
  const half = url ? 'ACTIONS_ID_TOKEN_REQUEST_TOKEN' : 'ACTIONS_ID_TOKEN_REQUEST_URL';
  throw new SigningError('IDENTITY_TOKEN_MISSING', 'there is no identity token to sign with', {
    where: url || secret ? half : 'SIGSTORE_ID_TOKEN, ACTIONS_ID_TOKEN_REQUEST_URL and ACTIONS_ID_TOKEN_REQUEST_TOKEN',
    expected: 'a CI job that may ask for identity tokens, or a token of audience "sigstore" in SIGSTORE_ID_TOKEN',
    found: url || secret ? `${half} is not set` : 'none of them is set',
    hint: 'in a GitHub workflow give the job "permissions: id-token: write"; or publish without --sign',
  });
}

async function requestToken(text: string, secret: string, fetch: HubFetch, signal: AbortSignal): Promise<string> {
  const where = 'ACTIONS_ID_TOKEN_REQUEST_URL';
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) throw refused(where, 'it is not an http or https URL');
  const url = new URL(text);
  url.searchParams.set('audience', AUDIENCE);
  const init = {
    method: 'GET' as const,
    headers: { accept: 'application/json', authorization: `Bearer ${secret}` },
    redirect: 'manual' as const,
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  };
  let body: string;
  try {
    const reply = await fetch(url.href, init);
    if (reply.status !== 200) throw refused(where, `status ${reply.status}`);
    body = await readBody(reply.body);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SigningError) throw error;
    throw refused(where, 'no answer');
  }
  return checkToken(tokenIn(body), where);
}

async function readBody(body: Awaited<ReturnType<HubFetch>>['body']): Promise<string> {
  const reader = body?.getReader();
  const pieces: Uint8Array[] = [];
  for (let size = 0; reader && size <= MAX_TOKEN; ) {
    const { value } = await reader.read();
    if (!value) break;
    pieces.push(value);
    size += value.length;
  }
  await reader?.cancel().catch(() => undefined);
  return Buffer.concat(pieces).toString('utf8');
}

function tokenIn(body: string): string {
  try {
    const { value } = JSON.parse(body) as { value?: unknown };
    return typeof value === 'string' ? value : '';
  } catch {
    return '';
  }
}

/** Throws SigningError IDENTITY_TOKEN_INVALID for what no certificate authority could read; quotes nothing of it. */
function checkToken(token: string, where: string): string {
  const claims = /^[\w-]+\.([\w-]+)\.[\w-]+$/.exec(token)?.[1];
  const { sub, email } = claims ? claimsOf(claims) : {};
  if (token.length <= MAX_TOKEN && (typeof sub === 'string' || typeof email === 'string')) return token;
  throw new SigningError('IDENTITY_TOKEN_INVALID', 'what should be an identity token is none', {
    where,
    expected: 'a signed JSON web token with a subject',
    hint: 'ask the identity provider for a new one, of audience "sigstore"',
  });
}

function claimsOf(part: string): { sub?: unknown; email?: unknown } {
  try {
    return (JSON.parse(Buffer.from(part, 'base64url').toString('utf8')) as object | null) ?? {};
  } catch {
    return {};
  }
}

const refused = (where: string, found: string): SigningError =>
  new SigningError('IDENTITY_TOKEN_REFUSED', 'the CI service gave no identity token', {
    where,
    found,
    hint: 'run the job again; it needs "permissions: id-token: write"',
  });
