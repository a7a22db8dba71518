import { describe, expect, it } from '@jest/globals';
import { DeviceQueue } from '../../runtime/queue.js';
import { codeOf } from '../workspace.js';

/** A piece of work that ends when it is told to. */
function gate(): { work: () => Promise<string>; open: () => void; started: () => boolean } {
  let [open, started] = [() => {}, false];
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const work = async (): Promise<string> => {
    started = true;
    await opened;
    return 'done';
  };
  return { work, open, started: () => started };
}

describe('a device queue', () => {
  it('runs one piece at a time, in order of arrival', async () => {
    const queue = new DeviceQueue(10);
    const order: number[] = [];
    let running = 0;
    const pieces = [0, 1, 2, 3, 4].map((number) =>
      queue.run(async () => {
        expect(++running).toBe(1);
        await Promise.resolve();
        order.push(number);
        running--;
        return number;
      }),
    );
    expect(queue.length).toBe(5);
    const results = await Promise.all(pieces);
    expect(results.map(({ value }) => value)).toEqual([0, 1, 2, 3, 4]);
    expect(order).toEqual([0, 1, 2, 3, 4]);
    expect(results.every(({ waitMs }) => waitMs >= 0)).toBe(true);
    expect(queue.length).toBe(0);
  });

  it('refuses what exceeds its bound at once, and goes on after it', async () => {
    const queue = new DeviceQueue(1);
    const first = gate();
    const [running, waiting] = [queue.run(first.work), queue.run(async () => 'second')];
    expect(await codeOf(() => queue.run(async () => 'third'))).toBe('QUEUE_FULL');
    first.open();
    expect((await running).value).toBe('done');
    expect((await waiting).value).toBe('second');
    expect((await queue.run(async () => 'later')).value).toBe('later');
  });

  it('goes on after work that fails', async () => {
    const queue = new DeviceQueue(5);
    const failing = queue.run(async () => Promise.reject(new Error('no')));
    const next = queue.run(async () => 'next');
    await expect(failing).rejects.toThrow('no');
    expect((await next).value).toBe('next');
  });

  it('takes aborted work out and never starts it', async () => {
    const queue = new DeviceQueue(5);
    const first = gate();
    const running = queue.run(first.work);
    const controller = new AbortController();
    const reason = new Error('left');
    const second = gate();
    const aborted = queue.run(second.work, controller.signal);
    const third = queue.run(async () => 'third');
    controller.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    expect(queue.length).toBe(2);
    first.open();
    await running;
    expect((await third).value).toBe('third');
    expect(second.started()).toBe(false);
    await expect(queue.run(second.work, controller.signal)).rejects.toBe(reason);
  });

  it('finishes what it has when it is closed, and takes nothing more', async () => {
    const queue = new DeviceQueue(5);
    const first = gate();
    const pieces = [queue.run(first.work), queue.run(async () => 'second')];
    let ended = false;
    const closing = queue.close().then(() => {
      ended = true;
    });
    expect(await codeOf(() => queue.run(async () => 'late'))).toBe('CLOSED');
    expect(ended).toBe(false);
    first.open();
    await Promise.all(pieces);
    await closing;
    await queue.close();
  });

  it('estimates from what it has measured, and forgets what left', async () => {
    const queue = new DeviceQueue(5);
    expect([queue.estimate(10), queue.backlogMs]).toEqual([null, 0]);
    await queue.run(async () => undefined, undefined, 10);
    const rate = queue.estimate(1)!;
    expect(rate).toBeGreaterThan(0);
    const first = gate();
    const running = queue.run(first.work, undefined, 10);
    const controller = new AbortController();
    const waiting = queue.run(async () => undefined, controller.signal, 30);
    expect(queue.backlogMs).toBeCloseTo(40 * rate);
    controller.abort(new Error('left'));
    await expect(waiting).rejects.toThrow('left');
    expect(queue.backlogMs).toBeCloseTo(10 * rate);
    const failing = queue.run(async () => Promise.reject(new Error('no')), undefined, 5);
    first.open();
    await running;
    await expect(failing).rejects.toThrow('no');
    expect(queue.backlogMs).toBe(0);
  });
});
