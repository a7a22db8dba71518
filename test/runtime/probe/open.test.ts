import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { openProbe, type ProbeOptions } from '../../../runtime/probe/client.js';
import { writeScript } from '../../probe/programs.js';
import { writeSmallModel } from '../../probe/small-model.js';
import type { Switches } from '../../probe/switches.js';
import { codeOf } from '../../workspace.js';
import { smallProbe } from './small-probe.js';

const { folder, simulated, options, opened } = smallProbe();

/** Milliseconds after which a probe that never speaks is given up. */
const GIVEN_UP = 300;

const openCode = async (switches: Partial<Switches>, more: Partial<ProbeOptions> = {}) =>
  codeOf(async () => (await opened(switches, more)).close());

// S18: it is ready when `openProbe` resolves, not before; a failure leaves nothing running.
describe('opening', () => {
  test.each([
    ['hello', 'kill', 'PROBE_KILLED_AT_START'],
    ['hello', 'exit', 'PROBE_START_FAILED'],
    ['hello', 'hang', 'PROBE_HUNG'],
    ['hello', 'garbage', 'PROBE_PROTOCOL'],
    ['hello', 'oversized', 'PROBE_PROTOCOL'],
    ['hello', 'truncated', 'PROBE_PROTOCOL'],
    ['ready', 'kill', 'PROBE_CRASHED'],
    ['ready', 'exit', 'PROBE_CRASHED'],
    ['ready', 'hang', 'PROBE_HUNG'],
    ['ready', 'garbage', 'PROBE_PROTOCOL'],
    ['ready', 'truncated', 'PROBE_PROTOCOL'],
    ['ready', 'wrong-id', 'PROBE_PROTOCOL'],
  ] as const)('a probe that fails at %s by %s: %s', async (at, does, code) => {
    const patience = does === 'hang' ? { [at === 'hello' ? 'hello' : 'load']: GIVEN_UP } : {};
    expect(await openCode({ faults: [{ at, does }] }, { patience })).toBe(code);
  });

  test.each([
    [{ protocol: 2 }, 'PROBE_VERSION'],
    [{ protocol: 'one' }, 'PROBE_PROTOCOL'],
    [{ core_ml: 'pear' }, 'PROBE_NOT_APPLE'],
    [{ core_ml: 'apple' }, 'PROBE_NOT_APPLE'],
    [{ limits: { frame: 0, queue: 8 } }, 'PROBE_PROTOCOL'],
    [{ limits: { frame: 1 << 20, queue: 0 } }, 'PROBE_PROTOCOL'],
    [{ limits: { frame: 256, queue: 8 } }, 'PROBE_PROTOCOL'],
    [{ limits: null }, 'PROBE_PROTOCOL'],
  ])('a probe that tells %j: %s', async (tells, code) => {
    expect(await openCode({ tells })).toBe(code);
  });

  // B08: a probe on other units than asked for is no probe for these requests.
  test('a probe on other compute units is refused', async () => {
    expect(await openCode({ tells: { units: 'cpuOnly' } })).toBe('PROBE_NOT_APPLE');
    const probe = await opened({}, { units: 'cpuOnly' });
    expect(probe.hello.units).toBe('cpuOnly');
    await probe.close();
  });

  test("only Apple's framework is accepted unless a test says otherwise", async () => {
    const { accept: _, ...rest } = simulated();
    const models = [await writeSmallModel(folder())];
    expect(await codeOf(() => openProbe({ ...rest, models }))).toBe('PROBE_NOT_APPLE');
  });

  test("a model that is refused or missing is the model's fault", async () => {
    expect(await openCode({ refuses: 'small' })).toBe('MODEL_REFUSED');
    expect(await openCode({}, { models: [join(folder(), 'nowhere')] })).toBe('MODEL_MISSING');
  });

  test('can be stopped while it loads', async () => {
    const never = join(folder(), 'never');
    const stop = new AbortController();
    const opening = openProbe(await options({ gates: [{ at: 'ready', file: never }] }, { signal: stop.signal }));
    stop.abort(new Error('stopped'));
    await expect(opening).rejects.toThrow('stopped');
    await expect(openProbe(await options({}, { signal: stop.signal }))).rejects.toThrow('stopped');
  });

  test('waits for a probe that starts slowly', async () => {
    const [hello, ready] = [join(folder(), 'hello'), join(folder(), 'ready')];
    const gates = [
      { at: 'hello', file: hello },
      { at: 'ready', file: ready },
    ] as const;
    const opening = openProbe(await options({ gates }));
    writeFileSync(hello, '');
    writeFileSync(ready, '');
    await (await opening).close();
  });

  // F28: nothing of this is said about a model.
  test('an executable that dies without a word is told from one that leaves', async () => {
    const script = (text: string) => ({ executable: writeScript(join(folder(), 'laya-probe'), text) });
    const killed = openProbe(await options({}, script('kill -9 $$')));
    await expect(killed).rejects.toMatchObject({
      code: 'PROBE_KILLED_AT_START',
      hint: expect.stringMatching(/com\.apple\.quarantine.*codesign/),
    });
    const left = openProbe(await options({}, script('echo "dyld: no such library" >&2; exit 6')));
    await expect(left).rejects.toMatchObject({ code: 'PROBE_START_FAILED', found: 'dyld: no such library' });
    const silent = openProbe(await options({}, script('exit 0')));
    await expect(silent).rejects.toMatchObject({ code: 'PROBE_START_FAILED' });
    expect(await openCode({}, { executable: join(folder(), 'nothing') })).toBe('PROBE_MISSING');
    expect(await openCode({}, script('echo "laya-probe 9"'))).toBe('PROBE_PROTOCOL');
  });
});
