import { HubError } from '../registry/hub/errors.js';
import { hubFetch } from '../registry/hub/fetch.js';
import { hubSettings } from '../registry/hub/settings.js';
import { HubTransport, type TransportOptions } from '../registry/hub/transport.js';
import type { HubAccess } from '../registry/index/repository.js';
import { hubCache } from '../registry/paths.js';
import { BackendUnavailableError } from '../runtime/errors.js';
import type { Context } from './events.js';

/** Retries, waits and the clock of a transport; the defaults are right outside tests. */
export type HubTiming = Omit<TransportOptions, 'fetch' | 'signal'>;

/** The hub as the context's environment names it, and the cache before it. Throws HubError for a setting it can't use. */
export async function openHub(context: Context, timing: HubTiming = {}): Promise<HubAccess> {
  const settings = hubSettings(context.env, { offline: context.offline });
  const fetch = await hubFetch(settings.proxy);
  const transport = new HubTransport(settings, { ...timing, fetch, signal: context.signal });
  return { transport, cacheDir: hubCache(context.env), offline: settings.offline !== undefined };
}

/** Names what an error of the hub is about, and the way without it; forbidden network is the guide's error. */
export function explainHub(error: unknown, what: string, hint: string): unknown {
  if (!(error instanceof HubError)) return error;
  const told = error.within(what, hint);
  return error.code === 'OFFLINE'
    ? new BackendUnavailableError('OFFLINE', told.message, { ...told, cause: error })
    : told;
}
