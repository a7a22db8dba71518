import { mkdirSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { InterruptedError } from '../../../pipeline/errors.js';
import { BUILT_PROBE, ensureProbe, isProbeBuilt, swiftVersion } from '../../../pipeline/tools/probe.js';
import { probeVersion } from '../../../runtime/probe/commands.js';
import { simulatedProbe, writeScript } from '../../probe/programs.js';
import { codeOf, workspace } from '../../workspace.js';
import { testContext } from '../context.js';

const folder = workspace();
const simulated = simulatedProbe();
const SYSTEM = '/usr/bin:/bin';
const BUILDS = 'cp "$LAYA_TEST_PROBE" "$scratch/release/laya-probe"';

/** A context whose `swift` is a script: it tells a version, notes each build, and does what is said. */
function swiftContext(does = BUILDS, version = 'Apple Swift version 6.1.2 (swiftlang-6.1.2)') {
  const [root, tools, bin] = [folder(), folder(), join(folder(), 'bin')];
  mkdirSync(bin);
  const { executable, env } = simulated();
  const program = writeScript(
    join(root, 'laya-probe'),
    `export NODE_PATH='${env.NODE_PATH}'\nexec '${executable}' "$@"`,
  );
  const log = join(root, 'builds');
  const script = [
    `if [ "$1" = --version ]; then echo '${version}'; exit 0; fi`,
    `echo "$*" >> '${log}'`,
    'while [ $# -gt 0 ]; do if [ "$1" = --scratch-path ]; then scratch=$2; fi; shift; done',
    'echo "[1/2] Compiling ProbeCore Frames.swift"',
    'mkdir -p "$scratch/release"',
    does,
  ];
  writeScript(join(bin, 'swift'), script.join('\n'));
  const context = testContext(root, { tools, env: { PATH: `${bin}:${SYSTEM}`, HOME: root, LAYA_TEST_PROBE: program } });
  return { context, tools, builds: () => readFileSync(log, 'utf8').trim().split('\n') };
}

describe('ensureProbe', () => {
  it('builds it from the sources on first use, and keeps the executable alone', async () => {
    const { context, tools, builds } = swiftContext();
    expect(await isProbeBuilt(context)).toBe(false);
    const probe = await ensureProbe(context, ['simulated']);
    expect(probe.executable).toMatch(/\/laya-probe-[0-9a-f]{12}\/bin\/laya-probe$/);
    expect(await probeVersion(probe)).toMatchObject({ name: 'laya-probe' });
    expect(await isProbeBuilt(context)).toBe(true);
    const [name] = await readdir(tools);
    expect([await readdir(tools), await readdir(join(tools, name!))]).toEqual([[name], ['bin']]);
    expect(builds()[0]).toMatch(/^build -c release --product laya-probe --package-path \S+swift-probe --scratch-path /);
    expect(context.events).toContainEqual({
      kind: 'tool_install',
      tool: 'laya-probe',
      detail: '[1/2] Compiling ProbeCore Frames.swift',
    });
    expect(context.events.at(-1)?.kind).toBe('tool_ready');
    await ensureProbe(context, ['simulated']);
    expect(builds()).toHaveLength(1);
  });

  it('lets one of two processes build', async () => {
    const { context, builds } = swiftContext();
    const both = await Promise.all([ensureProbe(context, ['simulated']), ensureProbe(context, ['simulated'])]);
    expect(both[0].executable).toBe(both[1].executable);
    expect(builds()).toHaveLength(1);
    expect(context.events.some(({ kind }) => kind === 'waiting')).toBe(true);
  });

  it('needs no network, and builds offline too', async () => {
    const { context } = swiftContext();
    await ensureProbe({ ...context, offline: true }, ['simulated']);
    expect(await isProbeBuilt(context)).toBe(true);
  });

  // B11: success is the output, not the exit status.
  it.each([
    ['the compiler fails', 'echo "error: no such module CoreML"; exit 1', 'PROBE_BUILD_FAILED'],
    ['nothing was made', 'true', 'PROBE_BUILD_FAILED'],
    [
      'what was made does not start',
      'printf "#!/bin/sh\\nexit 9\\n" > "$scratch/release/laya-probe"; chmod +x "$scratch/release/laya-probe"',
      'PROBE_START_FAILED',
    ],
  ])('leaves nothing when %s', async (_name, does, code) => {
    const { context, tools } = swiftContext(does);
    expect(await codeOf(() => ensureProbe(context, ['simulated']))).toBe(code);
    expect(await readdir(tools)).toEqual([]);
  });

  it('says what the compiler said', async () => {
    const { context } = swiftContext('echo "error: no such module CoreML"; exit 1');
    await expect(ensureProbe(context, ['simulated'])).rejects.toMatchObject({
      found: expect.stringContaining('error: no such module CoreML'),
    });
  });

  it("does not keep one whose Core ML is not Apple's, from the source that commands have", async () => {
    const { context, tools } = swiftContext();
    expect(await codeOf(() => BUILT_PROBE.ensure(context))).toBe('PROBE_NOT_APPLE');
    expect(await readdir(tools)).toEqual([]);
  });

  it('leaves nothing when it is stopped', async () => {
    const { context, tools } = swiftContext();
    const controller = new AbortController();
    const emit = (): void => controller.abort(new InterruptedError('SIGINT'));
    expect(await codeOf(() => ensureProbe({ ...context, emit, signal: controller.signal }, ['simulated']))).toBe(
      'INTERRUPTED',
    );
    expect(await readdir(tools)).toEqual([]);
  });
});

describe('BUILT_PROBE.check', () => {
  it('says at once when there is no Swift, or one too old', async () => {
    const { context } = swiftContext(BUILDS, 'swift-driver version: 1.90 Apple Swift version 5.10.1 (swiftlang-5.10)');
    await expect(BUILT_PROBE.check(context)).rejects.toMatchObject({ code: 'SWIFT_MISSING', found: '5.10.1' });
    const bare = { ...context, env: { PATH: SYSTEM } };
    expect(await codeOf(() => BUILT_PROBE.check(bare))).toBe('SWIFT_MISSING');
  });

  it('needs no Swift where laya-probe is built', async () => {
    const { context } = swiftContext();
    await ensureProbe(context, ['simulated']);
    await BUILT_PROBE.check({ ...context, env: { PATH: SYSTEM } });
  });

  it.each([
    ['swift-driver version: 1.120.5 Apple Swift version 6.1.2 (swiftlang-6.1.2.1.2 clang-1700.0.13.5)', '6.1.2'],
    ['Swift version 6.0.3 (swift-6.0.3-RELEASE)\nTarget: x86_64-unknown-linux-gnu', '6.0.3'],
    ['xcode-select: note: no developer tools were found', undefined],
  ])('reads the version in %j', (text, version) => {
    expect(swiftVersion(text)).toBe(version);
  });
});
