import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { findProgram } from '../../../runtime/ane/program.js';
import { locateProbe } from '../../../runtime/probe/locate.js';
import { codeOf } from '../../workspace.js';

const env = { LAYA_ARTIFACTS_TOOLS: join('/', 'tools'), HOME: '/home/u', PATH: '/bin', SECRET: 'x' };
const MAC = { platform: 'darwin', arch: 'arm64' } as const;

describe('the laya-probe that is started', () => {
  it('is the one in the tools cache, on a Mac with Apple silicon', async () => {
    const { executable } = await locateProbe(env);
    const { env: given, ...program } = await findProgram(undefined, env, MAC);
    expect(program).toEqual({ executable, accept: ['apple'], patience: {} });
    // Nothing else of this process's environment reaches it.
    expect({ ...given }).toEqual({ HOME: '/home/u', PATH: '/bin', TMPDIR: undefined, LC_ALL: 'C.UTF-8' });
  });

  it('is nowhere on other machines, unless one is named', async () => {
    for (const machine of [
      { platform: 'linux', arch: 'x64' },
      { platform: 'darwin', arch: 'x64' },
      { platform: 'win32', arch: 'arm64' },
    ] as const) {
      expect(await codeOf(() => findProgram(undefined, env, machine))).toBe('DEVICE_UNAVAILABLE');
      expect(await findProgram('/opt/laya-probe', env, machine)).toMatchObject({
        executable: '/opt/laya-probe',
        accept: ['apple'],
      });
    }
    const settings = { executable: 'p', env: { A: '1' }, accept: ['simulated'], patience: { answer: 5 } } as const;
    expect(await findProgram(settings, env, MAC)).toEqual(settings);
  });
});
