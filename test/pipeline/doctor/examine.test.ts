import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { type Examination, examine, ROLES, type Role } from '../../../pipeline/doctor/examine.js';
import type { Context } from '../../../pipeline/events.js';
import { compilerFolder } from '../../../pipeline/tools/compiler.js';
import { environmentFolder } from '../../../pipeline/tools/python.js';
import { recordText } from '../../../registry/durable.js';
import { artifactFolder } from '../../../registry/paths.js';
import { locateProbe } from '../../../runtime/probe/locate.js';
import { writeScript } from '../../probe/programs.js';
import { KEY, writeArtifact } from '../../registry/artifact.js';
import { treeOf, workspace, writeTree } from '../../workspace.js';
import { testContext } from '../context.js';

const folder = workspace();
const SYSTEM = '/usr/bin:/bin';
const LINUX = { platform: 'linux', arch: 'x64', node: '22.3.0' };
const MAC = { platform: 'darwin', arch: 'arm64', node: '24.0.1' };

/** Programs on PATH, each of which prints a text. */
function context(programs: Readonly<Record<string, string>> = {}, change: Partial<Context> = {}) {
  const bin = folder();
  for (const [name, does] of Object.entries(programs)) writeScript(join(bin, name), does);
  const env = { PATH: `${bin}:${SYSTEM}`, HOME: bin, LAYA_PYTHON: join(bin, 'python3') };
  return testContext(folder(), { tools: join(folder(), 'tools'), env, ...change });
}

const PYTHON = { python3: 'echo "3 12 /usr/bin/python3.12"' };
const RUST = { cargo: 'echo "cargo 1.93.1 (2026-01-01)"' };
const SWIFT = {
  sw_vers: 'echo 15.5',
  'xcode-select': 'echo /Library/Developer/CommandLineTools',
  swift: 'echo "Apple Swift version 6.1.2 (swiftlang-6.1.2)"',
};
const stateOf = ({ roles }: Examination, role: Role) => roles.find((one) => one.role === role);
const checkOf = ({ checks }: Examination, name: string) => checks.find(({ check }) => check === name);

/** laya-probe in the tools cache, as a script that says it is Apple's. */
async function installProbe({ tools, env }: Context, devices: string): Promise<void> {
  const { executable } = await locateProbe({ ...env, LAYA_ARTIFACTS_TOOLS: tools });
  mkdirSync(join(executable, '..'), { recursive: true });
  const probe = { name: 'laya-probe', version: '0.1.0', protocol: 1, protocols: [1], core_ml: 'apple' };
  const result = {
    architecture: 'arm64',
    soc: 'Apple M4',
    system: { name: 'macOS', version: '15.5', build: null },
    memory_bytes: 1,
    compute_devices: JSON.parse(devices),
  };
  writeScript(executable, `echo '${JSON.stringify({ probe, command: 'x', result })}' | sed "s/\\"x\\"/\\"$1\\"/"`);
}

describe('examine', () => {
  it('names what is missing on a bare PATH, with the command that mends it', async () => {
    const found = await examine(
      ROLES,
      context({}, { env: { PATH: folder(), LAYA_PYTHON: '/nowhere/python3' } }),
      LINUX,
    );
    expect(found.roles).toEqual([
      { role: 'build-portable', state: 'fails', missing: ['python', 'compiler'] },
      { role: 'build-apple', state: 'not-here', missing: ['system'] },
      { role: 'validate', state: 'not-here', missing: ['system'] },
      { role: 'run', state: 'works', missing: [] },
    ]);
    expect(checkOf(found, 'python')).toMatchObject({ state: 'missing', fix: expect.stringContaining('LAYA_PYTHON') });
    expect(checkOf(found, 'python')?.found).toMatch(/^PYTHON_MISSING: /);
    expect(checkOf(found, 'compiler')).toMatchObject({ state: 'missing', fix: expect.stringContaining('rustup') });
    expect(checkOf(found, 'system')?.found).toBe('linux x64');
    expect(checkOf(found, 'swift')).toBeUndefined();
    expect([found.locks, found.models]).toEqual([[], []]);
  });

  it('tells what it found where everything is there, and installs and writes nothing', async () => {
    const all = context({ ...PYTHON, ...RUST });
    const found = await examine(ROLES, all, LINUX);
    expect(found.roles.map(({ state }) => state)).toEqual(['works', 'not-here', 'not-here', 'works']);
    expect(checkOf(found, 'python')?.found).toBe('installed on first use, with /usr/bin/python3.12');
    expect(checkOf(found, 'compiler')?.found).toBe('built on first use, with cargo 1.93.1 (2026-01-01)');
    expect(checkOf(found, 'node')).toEqual({ check: 'node', state: 'ok', found: '22.3.0', fix: null });
    expect(checkOf(found, 'artifact_root')?.found).toMatch(/ [\d.]+ [kMG]?B free$/);
    expect(await treeOf(all.root)).toEqual([]);
    await expect(treeOf(all.tools)).rejects.toThrow('ENOENT');
  });

  it('knows what is installed already', async () => {
    const one = context();
    await mkdir(await environmentFolder('convert', one.tools), { recursive: true });
    await mkdir(compilerFolder(one.tools), { recursive: true });
    const found = await examine(['build-portable'], one, LINUX);
    expect(stateOf(found, 'build-portable')?.state).toBe('works');
    expect(checkOf(found, 'compiler')?.found).toBe(`installed in ${compilerFolder(one.tools)}`);
  });

  it.each([
    ['an old Rust', { ...PYTHON, cargo: 'echo "cargo 1.70.0"' }, 'compiler', 'RUST_MISSING'],
    ['an old Python', { ...RUST, python3: 'echo "3 9 /usr/bin/python3"' }, 'python', 'PYTHON_MISSING'],
  ])('does not take %s', async (_name, programs, name, code) => {
    const found = await examine(['build-portable'], context(programs), LINUX);
    expect(stateOf(found, 'build-portable')).toMatchObject({ state: 'fails', missing: [name] });
    expect(checkOf(found, name)?.found).toMatch(new RegExp(`^${code}: `));
  });

  it('refuses an old Node, and folders that can not be there', async () => {
    const file = join(folder(), 'file');
    writeFileSync(file, '');
    const found = await examine(['run'], context({}, { root: join(file, 'root') }), { ...LINUX, node: '20.18.3' });
    expect(stateOf(found, 'run')?.missing).toEqual(['node', 'artifact_root']);
    expect(checkOf(found, 'artifact_root')?.fix).toContain('LAYA_APPLE_CACHE');
  });

  it('waits for no tool that does not answer', async () => {
    const found = await examine(['build-portable'], context({ ...PYTHON, cargo: 'sleep 60' }), LINUX);
    expect(checkOf(found, 'compiler')).toMatchObject({ state: 'missing', found: 'no answer in 1.2 s' });
  });

  it('tells who holds locks, and what is registered', async () => {
    const one = context();
    await writeArtifact(artifactFolder(one.root, KEY));
    const name = 'laya-tiny-4defbfb4419a-L64.lock';
    const holder = { pid: process.pid, since: '2026-01-02T03:04:05.000Z' };
    await writeTree(join(one.root, 'artifacts/.locks'), {
      [`${name}.d/.keep`]: '',
      [`${name}.holder.json`]: recordText(holder),
    });
    const found = await examine(['run'], one, LINUX);
    expect(found.locks).toEqual([{ artifact: 'laya-tiny-4defbfb4419a-L64', ...holder, state: 'alive' }]);
    expect(found.models).toEqual([
      { artifact: 'laya-tiny/4defbfb4419a/bc1s-masked-L64-B1', evidence: 'portable', problem: null },
    ]);
  });
});

describe('examine on a Mac', () => {
  it('finds out what laya-probe would be built with', async () => {
    const found = await examine(ROLES, context({ ...PYTHON, ...SWIFT }), MAC);
    expect(found.roles.map(({ role, state }) => `${role} ${state}`)).toEqual([
      'build-portable fails',
      'build-apple works',
      'validate works',
      'run works',
    ]);
    expect(['macos', 'xcode', 'swift', 'laya_probe'].map((name) => checkOf(found, name)?.found)).toEqual([
      '15.5',
      '/Library/Developer/CommandLineTools',
      '6.1.2',
      'built on first use',
    ]);
  });

  it('asks no Swift where laya-probe is built, and asks that one instead', async () => {
    const one = context({ ...PYTHON, sw_vers: SWIFT.sw_vers });
    await installProbe(one, '[{"kind": "cpu"}, {"kind": "ane", "cores": 16}]');
    const found = await examine(['build-apple', 'validate'], one, MAC);
    expect(found.roles.map(({ state }) => state)).toEqual(['works', 'works']);
    expect(checkOf(found, 'laya_probe')?.found).toBe('0.1.0, Apple M4, cpu ane');
    expect(checkOf(found, 'swift')).toBeUndefined();
  });

  it.each([
    ['developer tools', { ...SWIFT, 'xcode-select': 'exit 2' }, ['xcode', 'swift'], 'xcode-select --install'],
    ['a new macOS', { ...SWIFT, sw_vers: 'echo 14.7' }, ['macos'], 'update macOS to 15 or newer'],
    ['a new Swift', { ...SWIFT, swift: 'echo "Apple Swift version 5.10 (x)"' }, ['swift'], 'xcode-select --install'],
  ])('misses %s', async (_name, programs, missing, fix) => {
    const found = await examine(['validate'], context(programs), MAC);
    expect(stateOf(found, 'validate')).toMatchObject({ state: 'fails', missing });
    expect(checkOf(found, missing[0]!)?.fix).toContain(fix);
  });

  it('tells a virtual machine, and a laya-probe that does not run', async () => {
    const one = context(SWIFT);
    await installProbe(one, '[{"kind": "cpu"}]');
    const virtual = checkOf(await examine(['validate'], one, MAC), 'laya_probe');
    expect(virtual).toMatchObject({ state: 'missing', found: expect.stringContaining('no Neural Engine here') });
    const { executable } = await locateProbe({ ...one.env, LAYA_ARTIFACTS_TOOLS: one.tools });
    chmodSync(executable, 0o644);
    const blocked = checkOf(await examine(['validate'], one, MAC), 'laya_probe');
    expect(blocked?.state).toBe('missing');
    expect(blocked?.found).toMatch(/^PROBE_/);
  });
});
