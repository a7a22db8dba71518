import { describe, expect, it } from '@jest/globals';
import { ArtifactRevisionError, ComputeUnitMismatchError } from '../../../registry/errors.js';
import { AneDevice, type AneDeviceOptions } from '../../../runtime/ane/device.js';
import type { AneSession } from '../../../runtime/ane/session.js';
import { ProbeError } from '../../../runtime/probe/errors.js';
import { codeOf } from '../../workspace.js';

interface Started extends AneSession {
  readonly closed: () => boolean;
  lose(error: ProbeError | null): Promise<void>;
}

/** A process that serves until it is lost or closed. */
function running(): Started {
  let end: (error: ProbeError | null) => void = () => undefined;
  let isClosed = false;
  const ended = new Promise<ProbeError | null>((resolve) => {
    end = resolve;
  });
  return {
    ...{ models: new Map(), version: '0.1.0', coreMl: 'simulated', pid: 1, seconds: 1, ended },
    closed: () => isClosed,
    close: async () => {
      isClosed = true;
      end(null);
    },
    lose: async (error) => {
      end(error);
      await ended;
    },
  };
}

const crash = (): ProbeError => new ProbeError('PROBE_CRASHED', 'it is gone', { hint: 'start it again' });

/** A device whose starts the test decides, at a time that the test sets. */
function device(...outcomes: (Started | Error)[]) {
  const clock = { now: 0, starts: 0, warnings: [] as string[] };
  const start: AneDeviceOptions['start'] = async () => {
    const outcome = outcomes[clock.starts++];
    if (outcome === undefined || outcome instanceof Error) throw outcome ?? new Error('one start too many');
    return outcome;
  };
  const warn = (message: string): void => void clock.warnings.push(message);
  return { clock, ane: new AneDevice({ start, now: () => clock.now, warn }) };
}

const codeNow = (ane: AneDevice): Promise<string> => codeOf(() => ane.session());

describe('the Neural Engine', () => {
  it('is starting, then serves, then is closed', async () => {
    const session = running();
    const { ane } = device(session);
    expect([ane.absence, ane.status.status]).toEqual(['ane_starting', 'starting']);
    expect(await ane.session()).toBe(session);
    expect([ane.absence, ane.current]).toEqual([null, session]);
    expect(ane.status).toEqual({ status: 'ready', reason: null, error: null, restarts: 0 });
    await ane.close();
    await ane.close();
    expect([session.closed(), ane.current, await codeNow(ane)]).toEqual([true, undefined, 'CLOSED']);
  });

  it('keeps refusing after a crash until a start succeeds, and does not start before its time', async () => {
    const [first, second] = [running(), running()];
    const { ane, clock } = device(first, crash(), second);
    await ane.session();
    await first.lose(crash());
    expect(ane.status).toEqual({
      status: 'down',
      reason: 'ane_runtime_unavailable',
      error: 'PROBE_CRASHED',
      restarts: 0,
    });
    clock.now = 999;
    expect([await codeNow(ane), clock.starts]).toEqual(['DEVICE_UNAVAILABLE', 1]);
    clock.now = 1000;
    expect([await codeNow(ane), clock.starts]).toEqual(['PROBE_CRASHED', 2]);
    clock.now = 2999;
    expect([await codeNow(ane), clock.starts]).toEqual(['DEVICE_UNAVAILABLE', 2]);
    clock.now = 3000;
    expect(await ane.session()).toBe(second);
    expect(ane.status).toMatchObject({ status: 'ready', restarts: 2 });
    expect(clock.warnings).toHaveLength(1);
  });

  it('is started again in the background where nobody has to wait for it', async () => {
    const [first, second] = [running(), running()];
    const { ane, clock } = device(first, second);
    await ane.session();
    await first.lose(null);
    ane.wake();
    expect(clock.starts).toBe(1);
    clock.now = 1000;
    ane.wake();
    ane.wake();
    expect([ane.absence, ane.current]).toEqual(['ane_runtime_unavailable', undefined]);
    expect(await ane.session()).toBe(second);
    expect(clock.starts).toBe(2);
  });

  it('waits longer after each loss, at most five minutes, and forgets them with an answer', async () => {
    const sessions = Array.from({ length: 14 }, running);
    const { ane, clock } = device(...sessions);
    const waits: number[] = [];
    const loseAndWait = async (session: Started): Promise<void> => {
      await ane.session();
      await session.lose(crash());
      const since = clock.now;
      while ((await codeNow(ane)) === 'DEVICE_UNAVAILABLE') clock.now += 500;
      waits.push(clock.now - since);
    };
    for (const session of sessions.slice(0, 12)) await loseAndWait(session);
    ane.answered();
    await loseAndWait(sessions[12]!);
    expect(waits.slice(0, 5)).toEqual([1000, 2000, 4000, 8000, 16000]);
    expect(waits.slice(-3)).toEqual([300_000, 300_000, 1000]);
  });

  it('tells auto why it is absent, by what its start threw', async () => {
    const absenceAfter = async (error: Error): Promise<unknown> => {
      const { ane } = device(error);
      await ane.session().catch(() => undefined);
      return ane.absence;
    };
    const foreign = new ArtifactRevisionError('PROFILE_MISMATCH', 'another Mac');
    const moved = new ComputeUnitMismatchError('PLACEMENT_REFUSED', 'on the CPU');
    expect(await absenceAfter(foreign)).toBe('platform_not_validated');
    expect(await absenceAfter(moved)).toBe('ane_artifact_unavailable');
    expect(await absenceAfter(crash())).toBe('ane_runtime_unavailable');
    expect(await absenceAfter(new Error('a fault'))).toBe('ane_runtime_unavailable');
  });

  it('leaves nothing running when it is closed while it starts', async () => {
    const session = running();
    const { ane } = device(session);
    const waiting = ane.session();
    await ane.close();
    expect(await codeOf(() => waiting)).toBe('CLOSED');
    expect([session.closed(), ane.status.status]).toEqual([true, 'closed']);
  });

  it('lets a caller leave who waits for a start', async () => {
    const { ane } = device(running());
    const stop = new AbortController();
    const waiting = ane.session(stop.signal);
    stop.abort(new Error('left'));
    await expect(waiting).rejects.toThrow('left');
    await expect(ane.session(stop.signal)).resolves.toBeDefined();
    await ane.close();
  });
});
