import { describe, expect, it } from '@jest/globals';
import { hereToolchain } from '../../../pipeline/toolchain/here.js';
import { codeOf, workspace } from '../../workspace.js';
import { cli } from '../cli.js';
import { testContext } from '../context.js';

const folder = workspace();
const MAC = { platform: 'darwin', arch: 'arm64' };
const ELSEWHERE = [
  { platform: 'linux', arch: 'x64' },
  { platform: 'linux', arch: 'arm64' },
  { platform: 'darwin', arch: 'x64' },
];
const choose = (options: Parameters<typeof hereToolchain>[0], host = MAC, env: Record<string, string> = {}) =>
  hereToolchain(options, testContext('/nowhere', { env }), host);

describe('hereToolchain', () => {
  it("is Apple's on a Mac with Apple silicon, portable elsewhere", () => {
    expect(choose({}).kind).toBe('apple');
    expect(ELSEWHERE.map((host) => choose({}, host).kind)).toEqual(['portable', 'portable', 'portable']);
  });

  it('is the one that was asked for', async () => {
    expect([choose({ toolchain: 'portable' }).kind, choose({ toolchain: 'apple' }).kind]).toEqual([
      'portable',
      'apple',
    ]);
    for (const host of ELSEWHERE)
      expect(await codeOf(() => choose({ toolchain: 'apple' }, host))).toBe('TOOLCHAIN_UNAVAILABLE');
  });

  it.each(['0', '1', '2', '-0.5', 'NaN', 'x', '0x1', '1e-3'])(
    'refuses %j as a bound of the load-time probe',
    async (text) => {
      expect(await codeOf(() => choose({ maxRatio: text }))).toBe('USAGE');
      expect(await codeOf(() => choose({}, MAC, { LAYA_PROBE_MAX_RATIO: text }))).toBe('USAGE');
    },
  );

  it('refuses a bound for the portable toolchain, which has no such probe', async () => {
    expect(await codeOf(() => choose({ toolchain: 'portable', maxRatio: '0.5' }))).toBe('USAGE');
    expect(await codeOf(() => choose({ maxRatio: '0.5' }, ELSEWHERE[0]))).toBe('USAGE');
    expect(choose({}, ELSEWHERE[0], { LAYA_PROBE_MAX_RATIO: '0.5' }).kind).toBe('portable');
  });

  it('takes a bound from the option, then from the environment; an empty variable is unset', () => {
    expect(choose({ maxRatio: '0.5' }, MAC, { LAYA_PROBE_MAX_RATIO: 'x' }).kind).toBe('apple');
    expect(choose({}, MAC, { LAYA_PROBE_MAX_RATIO: '.75' }).kind).toBe('apple');
    expect(choose({}, MAC, { LAYA_PROBE_MAX_RATIO: '' }).kind).toBe('apple');
  });
});

describe('the command line', () => {
  const run = (...args: string[]) => {
    const root = folder();
    return cli(args, { LAYA_APPLE_CACHE: root });
  };

  it('refuses a toolchain that this machine does not have, and one that there is not', async () => {
    const isMac = process.platform === 'darwin' && process.arch === 'arm64';
    const refused = await run('build', 'laya-tiny', '--toolchain', 'metal');
    expect([refused.code, refused.stdout]).toEqual([2, '']);
    if (isMac) return;
    const { code, stdout, stderr } = await run('build', 'laya-tiny', '--toolchain', 'apple');
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('error TOOLCHAIN_UNAVAILABLE');
    expect(stderr).toContain(`found: ${process.platform} ${process.arch}`);
    expect((await run('parity', 'laya-tiny', '--toolchain', 'apple', '--json')).stderr).toContain(
      '"code":"TOOLCHAIN_UNAVAILABLE"',
    );
  });

  it('refuses a bound that is none before any work', async () => {
    const { code, stderr } = await run('build', 'laya-tiny', '--max-ratio', '1.5');
    expect([code, stderr.includes('USAGE')]).toEqual([2, true]);
  });
});
