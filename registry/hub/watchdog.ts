import { HubError } from './errors.js';

/**
 * Aborts a request after a silence. Time counts only while something is awaited from the network, so that a slow disk
 * is not taken for a stalled hub.
 */
export class Watchdog {
  /** Aborted by a silence or by the caller's signal. */
  readonly signal: AbortSignal;
  private readonly controller = new AbortController();
  private readonly outer: AbortSignal | undefined;
  private readonly silenceMs: number;
  private readonly what: string;
  private timer: NodeJS.Timeout | undefined;
  private readonly relay = () => this.controller.abort(this.outer?.reason);

  constructor(silenceMs: number, what: string, outer?: AbortSignal) {
    this.silenceMs = silenceMs;
    this.what = what;
    this.outer = outer;
    this.signal = this.controller.signal;
    if (outer?.aborted) this.relay();
    outer?.addEventListener('abort', this.relay, { once: true });
  }

  /** The promise's result; rejects with HUB_TIMEOUT after the silence, or with the caller's reason. */
  async guard<T>(promise: Promise<T>): Promise<T> {
    this.timer = setTimeout(() => this.controller.abort(this.silence()), this.silenceMs);
    let stop = () => {};
    const aborted = new Promise<never>((_, reject) => {
      stop = () => reject(this.signal.reason);
      if (this.signal.aborted) stop();
      else this.signal.addEventListener('abort', stop, { once: true });
    });
    try {
      return await Promise.race([promise, aborted]);
    } finally {
      clearTimeout(this.timer);
      this.signal.removeEventListener('abort', stop);
      promise.catch(() => {});
    }
  }

  /** Bytes went out: the silence starts again. */
  sent(): void {
    this.timer?.refresh();
  }

  /** Lets go of the caller's signal; the request is over. */
  release(): void {
    this.outer?.removeEventListener('abort', this.relay);
  }

  private silence(): HubError {
    return new HubError('HUB_TIMEOUT', `nothing came for ${this.silenceMs / 1000} s`, {
      where: this.what,
      expected: `some bytes within ${this.silenceMs / 1000} s`,
      hint: 'try again; if a proxy is needed, set HTTPS_PROXY',
      transient: true,
    });
  }
}
