import { describe, expect, test } from '@jest/globals';
import { HubError } from '../../../registry/hub/errors.js';
import { type RetryPolicy, retryAfter, withRetries } from '../../../registry/hub/retry.js';

const NOW = Date.parse('2026-01-01T00:00:00Z');

/** A clock that never waits, and what it was asked to wait. */
function policy(more: Partial<RetryPolicy> = {}): RetryPolicy & { waits: number[] } {
  const waits: number[] = [];
  const clock = {
    now: () => NOW,
    sleep: async (ms: number) => {
      waits.push(ms);
    },
  };
  return { retries: 3, backoffMs: 500, longestWaitMs: 60_000, clock, ...more, waits };
}

const busy = (wait?: number) =>
  new HubError('HUB_RATE_LIMITED', 'busy', { transient: true, ...(wait === undefined ? {} : { retryAfter: wait }) });

function failing(...errors: unknown[]): { attempt: () => Promise<string>; calls: () => number } {
  let calls = 0;
  const attempt = async () => {
    const error = errors[calls++];
    if (error !== undefined) throw error;
    return 'done';
  };
  return { attempt, calls: () => calls };
}

describe('withRetries', () => {
  test('backs off longer each time', async () => {
    const waiting = policy();
    await expect(withRetries(failing(busy(), busy(), busy()).attempt, waiting)).resolves.toBe('done');
    expect(waiting.waits).toEqual([500, 1000, 2000]);
  });

  test('throws the last error when the tries are used up', async () => {
    const { attempt, calls } = failing(busy(), busy(), busy(), busy(), busy());
    await expect(withRetries(attempt, policy())).rejects.toMatchObject({ code: 'HUB_RATE_LIMITED' });
    expect(calls()).toBe(4);
  });

  // F13: waits as told.
  test('waits as long as the hub asks', async () => {
    const waiting = policy();
    await withRetries(failing(busy(7000), busy(0)).attempt, waiting);
    expect(waiting.waits).toEqual([7000, 0]);
  });

  // F13: an early retry would prolong a ban.
  test('gives up at once when the hub asks for more than is obeyed', async () => {
    const waiting = policy();
    const { attempt, calls } = failing(busy(86_400_000));
    await expect(withRetries(attempt, waiting)).rejects.toMatchObject({ retryAfter: 86_400_000 });
    expect([calls(), waiting.waits]).toEqual([1, []]);
  });

  test.each([new HubError('HUB_NOT_FOUND', 'no'), new TypeError('bug'), new Error('other')])(
    'does not repeat after %s',
    async (error) => {
      const { attempt, calls } = failing(error);
      await expect(withRetries(attempt, policy())).rejects.toBe(error);
      expect(calls()).toBe(1);
    },
  );

  test('does not count a failure that got further', async () => {
    const { attempt, calls } = failing(...Array.from({ length: 9 }, () => busy()));
    const waiting = policy();
    await expect(withRetries(attempt, waiting, () => calls() <= 9)).resolves.toBe('done');
    expect(waiting.waits).toEqual(Array(9).fill(500));
  });

  test('throws the reason of an aborted signal', async () => {
    const controller = new AbortController();
    const reason = new Error('stopped');
    const { attempt, calls } = failing(busy(), busy());
    const stopping = policy({ signal: controller.signal });
    const run = withRetries(async () => {
      controller.abort(reason);
      return attempt();
    }, stopping);
    await expect(run).rejects.toBe(reason);
    expect(calls()).toBe(1);
  });
});

describe('retryAfter', () => {
  test.each<[Record<string, string>, number | undefined]>([
    [{}, undefined],
    [{ 'retry-after': '5' }, 5000],
    [{ 'retry-after': ' 0 ' }, 0],
    [{ 'retry-after': '1.5' }, 1500],
    [{ 'retry-after': '999999999' }, 999_999_999_000],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:01:00 GMT' }, 60_000],
    [{ 'retry-after': 'Wed, 31 Dec 2025 00:00:00 GMT' }, 0],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '' }, undefined],
    [{ ratelimit: '"api";r=0;t=42' }, 42_000],
    [{ ratelimit: 'limit=100, remaining=0, reset=50' }, 50_000],
    [{ ratelimit: 'nonsense' }, undefined],
    [{ 'retry-after': '3', ratelimit: '"api";r=0;t=42' }, 3000],
  ])('of %j is %j', (headers, wait) => {
    expect(retryAfter({ get: (name) => headers[name] ?? null }, NOW)).toBe(wait);
  });
});
