import type { Environment } from '../paths.js';
import { HubError } from './errors.js';

/** How the hub is reached; resolved once, from options and environment. */
export interface HubSettings {
  /** Base URL without a trailing slash. */
  readonly endpoint: string;
  readonly token?: string;
  /** What forbids the network (an option's or variable's name), when something does. */
  readonly offline?: string;
  readonly proxy?: ProxySettings;
}

export interface ProxySettings {
  /** Proxy URL for http requests, and for https; empty for none. They may hold credentials. */
  readonly http: string;
  readonly https: string;
  readonly none: string;
  /** Variable that named the proxy, for messages. */
  readonly variable: string;
}

export interface HubOverrides {
  readonly endpoint?: string;
  readonly token?: string;
  readonly offline?: boolean;
}

const DEFAULT_ENDPOINT = 'https://huggingface.co';

/**
 * Settings from options first, then from HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE (TRANSFORMERS_OFFLINE when that is not
 * set) and the usual proxy variables. A blank variable counts as unset.
 *
 * @throws HubError HUB_ENDPOINT, HUB_TOKEN or HUB_PROXY; no message quotes a token or credentials
 */
export function hubSettings(env: Environment, overrides: HubOverrides = {}): HubSettings {
  const token = parseToken(overrides.token ?? env.HF_TOKEN);
  const offline = offlineReason(env, overrides.offline);
  const proxy = proxySettings(env);
  return {
    endpoint: parseEndpoint(overrides.endpoint ?? env.HF_ENDPOINT),
    ...(token === undefined ? {} : { token }),
    ...(offline === undefined ? {} : { offline }),
    ...(proxy === undefined ? {} : { proxy }),
  };
}

/** An http(s) base URL, which may have a path, without trailing slashes. Blank means the default. */
export function parseEndpoint(value: string | undefined): string {
  const text = value?.trim() ?? '';
  if (text === '') return DEFAULT_ENDPOINT;
  const refuse = (found: string): never => {
    throw new HubError('HUB_ENDPOINT', `the hub endpoint can't be used: ${found}`, {
      where: 'HF_ENDPOINT',
      expected: 'an http or https URL without credentials, query or fragment',
      found,
      hint: `set HF_ENDPOINT to a URL such as ${DEFAULT_ENDPOINT}`,
    });
  };
  if (!/^https?:\/\//i.test(text)) refuse('it does not start with https:// or http://');
  if (!URL.canParse(text)) refuse('it is not a URL');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') refuse('it holds credentials');
  if (url.search !== '' || url.hash !== '') refuse('it has a query or fragment');
  return url.origin + url.pathname.replace(/\/+$/, '');
}

/** A token that can stand in a header: printable ASCII without spaces. Blank means none. */
export function parseToken(value: string | undefined): string | undefined {
  const token = value?.trim() ?? '';
  if (token === '') return undefined;
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new HubError('HUB_TOKEN', 'the hub token holds a space, a control character or a character outside ASCII', {
    where: 'HF_TOKEN',
    expected: 'one line of printable ASCII',
    hint: 'copy the token again, without line breaks or quotation marks',
  });
}

function offlineReason(env: Environment, option: boolean | undefined): string | undefined {
  if (option) return 'the offline option';
  const variable = env.HF_HUB_OFFLINE ? 'HF_HUB_OFFLINE' : 'TRANSFORMERS_OFFLINE';
  return /^(1|on|yes|true)$/i.test(env[variable] ?? '') ? variable : undefined;
}

function proxySettings(env: Environment): ProxySettings | undefined {
  const first = (...names: string[]) => names.find((name) => env[name]?.trim());
  const secure = first('https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY');
  const plain = first('http_proxy', 'HTTP_PROXY', 'all_proxy', 'ALL_PROXY');
  const variable = secure ?? plain;
  if (variable === undefined) return undefined;
  const none = env[first('no_proxy', 'NO_PROXY') ?? 'no_proxy'] ?? '';
  return { http: proxyUrl(env, plain), https: proxyUrl(env, secure), none, variable };
}

function proxyUrl(env: Environment, variable: string | undefined): string {
  if (variable === undefined) return '';
  const text = env[variable]!.trim();
  const url = text.includes('://') ? text : `http://${text}`;
  if (/^(https?|socks5?):\/\//i.test(url) && URL.canParse(url)) return url;
  throw new HubError('HUB_PROXY', `the proxy in ${variable} can't be used`, {
    where: variable,
    expected: 'an http, https or socks5 URL',
    hint: `correct ${variable}, or unset it`,
  });
}
