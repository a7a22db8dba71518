import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from '@jest/globals';
import type { ProbeProgram } from '../../runtime/probe/process.js';
import type { CoreMlKind } from '../../runtime/probe/records.js';
import type { Switches } from './switches.js';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

/** The function that the bundle calls. */
const ENTRY: keyof typeof import('./simulated-probe.js') = 'main';

/** A probe that tests start, and what computes in it. */
export interface ProgramUnderTest extends ProbeProgram {
  readonly accept: readonly CoreMlKind[];
}

/** Builds the simulated probe for a test file; each call of what it gives is a probe with its own switches. */
export function simulatedProbe(): (switches?: Partial<Switches>) => ProgramUnderTest {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'laya-simulated-'));
    const [source, bundle] = [join(folder, 'main.ts'), join(folder, 'simulated-probe.cjs')];
    const simulated = JSON.stringify(join(PROJECT, 'test', 'probe', 'simulated-probe.js'));
    writeFileSync(source, `import { ${ENTRY} } from ${simulated};\nvoid ${ENTRY}();\n`);
    const options = ['--bundle', '--platform=node', '--format=cjs', '--packages=external'];
    const esbuild = join(PROJECT, 'node_modules', 'esbuild', 'bin', 'esbuild');
    execFileSync(esbuild, [source, ...options, '--supported:dynamic-import=false', `--outfile=${bundle}`], {
      stdio: 'pipe',
    });
    writeScript(join(folder, 'laya-probe'), `exec '${process.execPath}' '${bundle}' "$@"`);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return (switches = {}) => ({
    executable: join(folder, 'laya-probe'),
    env: { NODE_PATH: join(PROJECT, 'node_modules'), SIMULATED_PROBE: JSON.stringify(switches) },
    accept: ['simulated'],
  });
}

/**
 * The probe that the conformance suite is about: the one named in LAYA_PROBE_UNDER_TEST (`npm run test:swift`), else
 * the simulated one.
 */
export function probeUnderTest(): () => ProgramUnderTest {
  const simulated = simulatedProbe();
  const executable = process.env.LAYA_PROBE_UNDER_TEST;
  if (!executable) return simulated;
  return () => ({ executable, env: {}, accept: ['stub'] });
}

/** A shell script with the run bit. */
export function writeScript(file: string, text: string): string {
  writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return file;
}
