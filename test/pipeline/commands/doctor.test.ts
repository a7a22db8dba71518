import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { treeOf, workspace } from '../../workspace.js';
import { cli } from '../cli.js';

const folder = workspace();

function doctor(args: readonly string[], env: Record<string, string> = {}) {
  const root = folder();
  const tools = join(folder(), 'tools');
  return { root, run: cli(['doctor', ...args], { LAYA_APPLE_CACHE: root, LAYA_ARTIFACTS_TOOLS: tools, ...env }) };
}

describe('doctor', () => {
  it('prints a document, and fails when a role that this system can have does not work', async () => {
    const { root, run } = doctor(['--json'], { PATH: '/usr/bin:/bin', LAYA_PYTHON: '/nowhere/python3' });
    const { code, stdout, stderr } = await run;
    const { roles, checks, locks, models } = JSON.parse(stdout);
    expect([code, stderr]).toEqual([1, '']);
    expect(roles).toContainEqual({
      role: 'build-portable',
      state: 'fails',
      missing: expect.arrayContaining(['python']),
    });
    expect(roles).toContainEqual({ role: 'run', state: 'works', missing: [] });
    for (const { check, state, found, fix } of checks) {
      expect([typeof check, typeof found]).toEqual(['string', 'string']);
      expect(state === 'ok' ? fix : typeof fix).toBe(state === 'ok' ? null : 'string');
    }
    expect([locks, models]).toEqual([[], []]);
    expect(await treeOf(root)).toEqual([]);
  });

  it('judges one role where it is asked to', async () => {
    const works = await doctor(['--role', 'run']).run;
    expect([works.code, works.stderr]).toEqual([0, '']);
    expect(works.stdout).toContain('laya-artifacts build laya-tiny');
    const isMac = process.platform === 'darwin' && process.arch === 'arm64';
    if (!isMac) expect((await doctor(['--role', 'build-apple']).run).code).toBe(1);
    expect((await doctor(['--role', 'fly']).run).code).toBe(2);
  });
});
