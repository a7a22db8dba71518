import { type ErrorFacts, LayaError } from '../../schemas/errors.js';

export type HubErrorCode =
  /** An endpoint, token, proxy, repository or revision that can't be used; nothing was sent. */
  | 'HUB_ENDPOINT'
  | 'HUB_TOKEN'
  | 'HUB_PROXY'
  | 'HUB_NAME'
  /** The network is forbidden and the cache doesn't have what was asked for. */
  | 'OFFLINE'
  | 'HUB_UNREACHABLE'
  | 'HUB_TIMEOUT'
  | 'HUB_RATE_LIMITED'
  | 'HUB_SERVER'
  | 'HUB_ACCESS'
  | 'HUB_NOT_FOUND'
  /** What was to be made is there already. */
  | 'HUB_EXISTS'
  /** The branch is no longer at the commit that was named as the parent. */
  | 'HUB_CONFLICT'
  | 'HUB_STATUS'
  | 'HUB_REDIRECT'
  /** What came is a web page, a Git LFS pointer, too few bytes, or other bytes than the listing promises. */
  | 'HUB_HTML'
  | 'HUB_POINTER'
  | 'HUB_SHORT'
  | 'HUB_CORRUPT'
  /** The listing of files is not valid, lacks a required file, or names other weights than the pinned ones. */
  | 'HUB_LISTING'
  | 'HUB_FILE_MISSING'
  | 'HUB_PIN'
  /** The hub does not take a file or a commit, or answers in a way that can't be followed. */
  | 'HUB_UPLOAD'
  /** The cache folder can't be read or written. */
  | 'HUB_CACHE';

export interface HubFacts extends ErrorFacts {
  /** True when the same request may succeed a little later. */
  readonly transient?: boolean;
  /** How long the hub asked to wait, in milliseconds. */
  readonly retryAfter?: number;
}

/** Something that went wrong between us, the network, the hub and its cache. Never holds a token or a signed URL. */
export class HubError extends LayaError<HubErrorCode> {
  readonly transient: boolean;
  readonly retryAfter?: number;
  readonly #facts: HubFacts;

  constructor(code: HubErrorCode, message: string, facts: HubFacts = {}) {
    super(code, message, facts);
    this.#facts = facts;
    this.transient = facts.transient ?? false;
    if (facts.retryAfter !== undefined) this.retryAfter = facts.retryAfter;
  }

  /** The same error as seen from further out: `what` stands before the message, `hint` is another way beside its own. */
  within(what: string, hint: string): HubError {
    const hints = this.hint === undefined ? hint : `${this.hint}; or ${hint}`;
    return new HubError(this.code, `${what}: ${this.message}`, { ...this.#facts, hint: hints, cause: this });
  }
}
