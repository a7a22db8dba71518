import type { IncomingMessage } from 'node:http';
import { HttpError } from './errors.js';
import { isLoopbackRequest, isOwnOrigin } from './loopback.js';

export interface GuardOptions {
  /** True when the server is bound to loopback: then only loopback names reach it. */
  readonly loopbackOnly: boolean;
  readonly isStopping: () => boolean;
}

/** The refusal of a request that must not reach the routes, by its header alone. */
export function guard({ rawHeaders, url }: IncomingMessage, options: GuardOptions): HttpError | undefined {
  if (options.loopbackOnly && !isLoopbackRequest(rawHeaders))
    return new HttpError('HOST_NOT_LOOPBACK', 'this server answers loopback requests only');
  if (!isOwnOrigin(rawHeaders)) return new HttpError('ORIGIN_FOREIGN', 'this server does not answer other sites');
  if (!url?.startsWith('/')) return new HttpError('TARGET_INVALID', 'the request target must be a path');
  if (options.isStopping()) return new HttpError('STOPPING', 'the server is stopping');
  return undefined;
}
