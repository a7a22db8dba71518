import { writeFileSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { findModel } from '../../../registry/models.js';
import { artifactFolder, COMPILED } from '../../../registry/paths.js';
import { BackendUnavailableError } from '../../../runtime/errors.js';
import { Laya } from '../../../runtime/laya.js';
import type { OpenOptions } from '../../../runtime/open.js';
import type { Switches } from '../../probe/switches.js';
import { codeOf } from '../../workspace.js';
import { appleStores, asIfApple, isAlive, MANY, pidOf, SHORT } from './apple-store.js';

const { rooted, open, folder, probe } = appleStores();

/** Requests of a session of one bucket: the first one warms it. */
const [FIRST, SECOND] = [2, 3];
/** Milliseconds after which a probe that hangs is given up; long enough for a request that does not. */
const GIVEN_UP = 3000;

const crashAt = (at: number): Partial<Switches> => ({ faults: [{ at, does: 'kill' }] });

/** A clock that the test sets; it starts late enough for every file to be settled. */
function clock() {
  const time = { now: Date.now() + 60_000 };
  return { time, now: () => time.now };
}

describe('a process that is lost', () => {
  // S18, S19: what is dead is found and started again; nothing else answers in its place.
  it('raises for the request that ran and for explicit ones, until a start succeeds', async () => {
    const { time, now } = clock();
    const laya = await open(await rooted([64]), crashAt(SECOND), { device: 'ane', now });
    const pid = pidOf(laya);
    expect((await laya.predict(SHORT)).runtime.ane_restarts).toBe(0);
    const failure = await laya.predict(SHORT).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(BackendUnavailableError);
    expect(failure).toMatchObject({ code: 'PROBE_CRASHED', hint: expect.any(String) });
    expect(isAlive(pid)).toBe(false);
    for (let i = 0; i < 3; i++) expect(await codeOf(() => laya.predict(SHORT))).toBe('DEVICE_UNAVAILABLE');
    expect(laya.info().ane).toMatchObject({ status: 'down', error: 'PROBE_CRASHED', restarts: 0 });
    expect((await laya.predict({ ...SHORT, questions: [] })).runtime.device).toBe('none');
    time.now += 1000;
    const { runtime } = await laya.predict(SHORT);
    expect(runtime).toMatchObject({ device: 'ane', device_reason: 'ane_requested', ane_restarts: 1 });
    await laya.close();
    expect(laya.info().ane.status).toBe('closed');
  });

  it('leaves later auto requests to the cpu, with the reason, until it serves again', async () => {
    const { time, now } = clock();
    const warnings: string[] = [];
    const onWarning = (message: string): void => void warnings.push(message);
    const laya = await open(await rooted([64]), crashAt(SECOND), { now, onWarning });
    expect((await laya.predict(SHORT)).runtime.device).toBe('ane');
    expect(await codeOf(() => laya.predict(SHORT))).toBe('PROBE_CRASHED');
    const down = { device: 'cpu', device_reason: 'ane_runtime_unavailable' };
    for (let i = 0; i < 3; i++) expect((await laya.predict(SHORT)).runtime).toMatchObject(down);
    time.now += 1000;
    expect((await laya.predict(SHORT)).runtime).toMatchObject(down);
    await laya.waitForAne();
    expect((await laya.predict(SHORT)).runtime).toMatchObject({
      device: 'ane',
      device_reason: 'validated_short_single_question_path',
      ane_restarts: 1,
    });
    expect(await codeOf(() => laya.predict(SHORT))).toBe('PROBE_CRASHED');
    expect(warnings).toEqual([expect.stringContaining('PROBE_CRASHED')]);
    await laya.close();
  });

  it('raises for no auto request that had yet to run', async () => {
    const gate = join(folder(), 'go');
    const laya = await open(await rooted([64]), { ...crashAt(FIRST), gates: [{ at: FIRST, file: gate }] });
    const asked = [1, 2, 3].map(() => laya.predict(SHORT));
    const settled = Promise.allSettled(asked);
    while (laya.info().ane.queue_length < 3) await laya.predict(MANY);
    writeFileSync(gate, '');
    const outcomes = await settled;
    const lost = outcomes.filter((one) => one.status === 'rejected');
    expect(lost).toMatchObject([{ reason: { code: 'PROBE_CRASHED' } }]);
    const down = { device: 'cpu', device_reason: 'ane_runtime_unavailable' };
    for (const other of outcomes.filter((one) => one.status === 'fulfilled'))
      expect(other.value.runtime).toMatchObject(down);
    await laya.close();
  });

  it('is one that hangs, or breaks the protocol', async () => {
    const outcomeOf = async (does: Switches['faults'][number]['does']): Promise<string> => {
      const settings = probe({ faults: [{ at: FIRST, does }] }, { patience: { answer: GIVEN_UP } });
      const laya = await open(await rooted([64]), {}, { device: 'ane', probe: settings });
      const pid = pidOf(laya);
      const code = await codeOf(() => laya.predict(SHORT));
      expect([isAlive(pid), laya.info().ane.error]).toEqual([false, code]);
      await laya.close();
      return code;
    };
    expect(await outcomeOf('hang')).toBe('PROBE_HUNG');
    expect(await outcomeOf('garbage')).toBe('PROBE_PROTOCOL');
    expect(await outcomeOf('wrong-length')).toBe('PROBE_PROTOCOL');
  });
});

describe('a Neural Engine that can not serve', () => {
  /** What explicit `ane` raises, and why `auto` answers on the cpu. */
  async function outcomes(root: string, switches: Partial<Switches> = {}, options: OpenOptions = {}) {
    const explicit = await codeOf(() => open(root, switches, { ...options, device: 'ane' }));
    const laya = await open(root, switches, options);
    const { runtime } = await laya.predict(SHORT);
    expect([runtime.device, runtime.backend, laya.info().ane.probe]).toEqual(['cpu', 'portable', null]);
    await laya.close();
    return `${explicit} ${runtime.device_reason}`;
  }

  // B08: evidence of another machine is none of this one's.
  it('has artifacts of another profile', async () => {
    const root = await rooted([]);
    await asIfApple(root, 64, { soc: 'Apple M4 Max' });
    expect(await outcomes(root)).toBe('PROFILE_MISMATCH platform_not_validated');
    await asIfApple(root, 64, { macos: '26.6.2' });
    expect(await outcomes(root)).toBe('PROFILE_MISMATCH platform_not_validated');
    await asIfApple(root, 96);
    const laya = await open(root);
    expect([laya.info().ane.loaded, (await laya.predict(SHORT)).runtime.buckets]).toEqual([['L96'], [96]]);
    await laya.close();
  });

  it('has no laya-probe, or one that is not to be used', async () => {
    const root = await rooted([64]);
    const absent = { ...probe(), executable: join(folder(), 'laya-probe') };
    expect(await outcomes(root, {}, { probe: absent })).toBe('PROBE_MISSING ane_runtime_unavailable');
    expect(await outcomes(root, { tells: { protocol: 2 } })).toBe('PROBE_VERSION ane_runtime_unavailable');
    expect(await outcomes(root, {}, { probe: probe({}, { accept: ['apple'] }) })).toBe(
      'PROBE_NOT_APPLE ane_runtime_unavailable',
    );
    expect(await outcomes(root, crashAt(1))).toBe('PROBE_CRASHED ane_runtime_unavailable');
    expect(await outcomes(root, { refuses: 'L64' })).toBe('MODEL_REFUSED ane_runtime_unavailable');
  });

  it('is of another system', async () => {
    const root = await rooted([64], ['artifacts', 'portable']);
    const refusal = await Laya.open('laya-tiny', { root, device: 'ane', env: {} }).catch((error: unknown) => error);
    const code = process.platform === 'darwin' ? 'PROBE_MISSING' : 'DEVICE_UNAVAILABLE';
    expect(refusal).toMatchObject({ name: 'BackendUnavailableError', code, hint: expect.any(String) });
    for (const options of [{ device: 'gpu' }, { device: 'ane', graph: 'any-length' }] as const)
      expect(await codeOf(() => Laya.open('laya-tiny', { root, ...options }))).toBe('DEVICE_UNAVAILABLE');
  });

  it('has nothing that was proven on it', async () => {
    expect(await outcomes(await rooted([]))).toBe('COMPUTE_UNITS_MISMATCH ane_artifact_unavailable');
    const bare = await rooted([], ['portable']);
    expect(await outcomes(bare)).toBe('ARTIFACT_MISSING ane_artifact_unavailable');
  });

  // B08: bytes and placement are looked at, not believed.
  it('finds other bytes, or operations elsewhere than the manifest says', async () => {
    const root = await rooted([64]);
    const elsewhere: Partial<Switches> = { onCpu: ['layer_norm'] };
    expect(await outcomes(root, elsewhere)).toBe('PLACEMENT_REFUSED ane_artifact_unavailable');
    const metadata = join(
      artifactFolder(root, { model: findModel('laya-tiny'), bucket: 64 }),
      COMPILED,
      'metadata.json',
    );
    await appendFile(metadata, ' ');
    expect(await outcomes(root)).toBe('TREE_MISMATCH ane_artifact_unavailable');
  });

  it('looks at the placement again under another build of macOS, and not before', async () => {
    const root = await rooted([64]);
    const { now } = clock();
    const elsewhere: Partial<Switches> = { onCpu: ['layer_norm'] };
    await (await open(root, {}, { device: 'ane', now })).close();
    await (await open(root, elsewhere, { device: 'ane', now })).close();
    const system = { name: 'macOS', version: '15.6', build: '24G84' };
    const other = { ...elsewhere, device: { system } };
    expect(await codeOf(() => open(root, other, { device: 'ane', now }))).toBe('PLACEMENT_REFUSED');
  });
});
