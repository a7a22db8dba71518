import type { Environment } from '../paths.js';
import { TrustError } from './errors.js';

/** Where the trust root comes from. */
export interface TrustSource {
  /** A `trusted_root.json`; nothing else is looked at then. */
  readonly file?: string;
  /** A private Sigstore's TUF repository and the root.json that it starts from; the public one when absent. */
  readonly mirror?: { readonly url: string; readonly root: string };
  /** Root of our cache, which keeps what was brought. */
  readonly cache: string;
  readonly offline: boolean;
}

/** A private Sigstore's TUF repository, from the environment. Throws TrustError when only half of it is named. */
export function trustMirror(env: Environment): TrustSource['mirror'] {
  const [url, root] = [env.SIGSTORE_TUF_URL?.trim(), env.SIGSTORE_TUF_ROOT?.trim()];
  if (!url && !root) return undefined;
  if (url && root && /^https?:\/\//.test(url) && URL.canParse(url)) return { url: url.replace(/\/+$/, ''), root };
  throw new TrustError('TRUST_ROOT_INVALID', 'the private trust root is not fully named', {
    where: 'SIGSTORE_TUF_URL, SIGSTORE_TUF_ROOT',
    expected: "an http or https URL, and the path of that repository's root.json",
  });
}
