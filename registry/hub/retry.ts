import { setTimeout } from 'node:timers/promises';
import pRetry from 'p-retry';
import { HubError } from './errors.js';

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after so many milliseconds; rejects when the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<unknown>;
}

export const systemClock: Clock = {
  now: Date.now,
  sleep: (ms, signal) => setTimeout(ms, undefined, signal ? { signal } : {}),
};

export interface RetryPolicy {
  /** Tries after the first. */
  readonly retries: number;
  /** Wait before the first retry, doubled each time, when the hub doesn't say how long. */
  readonly backoffMs: number;
  /** Longest wait that is obeyed. When the hub asks for more, we give up at once: an early retry would prolong a ban. */
  readonly longestWaitMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

/**
 * Runs `attempt` until it succeeds, fails for good, or the tries are used up; then the last error is thrown. Only a
 * HubError that is transient is tried again. A failure after which `advanced` is true uses up no try: a long download
 * over a bad line goes on as long as it gets on. An aborted signal's reason is thrown as it is.
 */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  policy: RetryPolicy,
  advanced: () => boolean = () => false,
): Promise<T> {
  const { retries, clock, signal } = policy;
  try {
    return await pRetry(attempt, {
      retries,
      minTimeout: 0,
      shouldConsumeRetry: () => !advanced(),
      shouldRetry: async ({ error, retriesConsumed }) => {
        const wait = waitAfter(error, retriesConsumed, policy);
        if (wait === undefined || signal?.aborted) return false;
        await clock.sleep(wait, signal);
        return true;
      },
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

function waitAfter(error: Error, used: number, policy: RetryPolicy): number | undefined {
  if (!(error instanceof HubError) || !error.transient) return undefined;
  const wait = error.retryAfter ?? policy.backoffMs * 2 ** used;
  return wait <= policy.longestWaitMs ? wait : undefined;
}

/**
 * How long a reply asks to wait, in milliseconds: `Retry-After` in seconds or as a date, else the reset time of a
 * `RateLimit` header. Undefined when it says nothing that can be understood.
 */
export function retryAfter(headers: { get(name: string): string | null }, now: number): number | undefined {
  const told = headers.get('retry-after')?.trim() ?? '';
  if (/^[0-9]{1,12}(\.[0-9]+)?$/.test(told)) return Number(told) * 1000;
  const date = told === '' ? Number.NaN : Date.parse(told);
  if (!Number.isNaN(date)) return Math.max(0, date - now);
  const reset = /\b(?:t|reset)=([0-9]{1,12})\b/.exec(headers.get('ratelimit') ?? '')?.[1];
  return reset === undefined ? undefined : Number(reset) * 1000;
}
