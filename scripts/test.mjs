// `npm test`: builds, runs every check and every suite, and ends with a plain line `N passed, N failed`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const node = (...args) => ({ file: process.execPath, args });
const tool = (path, ...args) => node(join('node_modules', path), ...args);
const results = mkdtempSync(join(tmpdir(), 'laya-jest-'));
const report = join(results, 'jest.json');
/** Plain text, also where a tool thinks that CI shows colours. */
const env = { ...process.env, NODE_NO_WARNINGS: '1', NO_COLOR: '1', FORCE_COLOR: '0' };
const totals = { passed: 0, failed: 0 };
/** What failed, by name: told again at the end, where a log that was cut still has it. */
const failures = [];

function run({ file, args }, capture) {
  const stdio = ['ignore', capture ? 'pipe' : 'inherit', 'inherit'];
  return spawnSync(file, args, { cwd: root, stdio, encoding: 'utf8', env });
}

/** One check counts as one test. */
function check(name, command) {
  const started = Date.now();
  const ok = run(command).status === 0;
  totals[ok ? 'passed' : 'failed'] += 1;
  if (!ok) failures.push(name);
  console.log(`${ok ? 'ok' : 'FAILED'}: ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  return ok;
}

/** A Python suite ends with its own line `N passed, N failed`. */
function python(name, command) {
  const { stdout, status } = run(command, true);
  process.stdout.write(stdout ?? '');
  const [, passed = '0', failed = '1'] = /(\d+) passed, (\d+) failed\s*$/.exec(stdout ?? '') ?? [];
  totals.passed += Number(passed);
  const lost = Math.max(Number(failed), status === 0 ? 0 : 1);
  totals.failed += lost;
  if (lost > 0) failures.push(name);
  console.log(`${name}: ${passed} passed, ${failed} failed`);
}

/** A suite that could not start counts as a failed test; no test at all is a failure too. */
function jest() {
  const args = ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--json', `--outputFile=${report}`];
  const { status } = run(node(...args, '--ci', '--silent=false'), true);
  const found = JSON.parse(readFileSync(report, 'utf8'));
  for (const suite of found.testResults.filter((one) => one.status === 'failed')) {
    console.log(suite.message);
    const failed = suite.assertionResults.filter((one) => one.status === 'failed').map((one) => `: ${one.fullName}`);
    failures.push(
      ...(failed.length > 0 ? failed : [' could not start']).map((what) => relative(root, suite.name) + what),
    );
  }
  totals.passed += found.numPassedTests;
  totals.failed += found.numFailedTests + found.numRuntimeErrorTestSuites + found.numPendingTests;
  if (found.numTotalTests === 0 || (status !== 0 && totals.failed === 0)) totals.failed += 1;
  console.log(`jest: ${found.numPassedTests} passed, ${found.numFailedTests} failed`);
}

check('build', node('scripts/build.mjs'));
check('types', tool('typescript/bin/tsc', '--noEmit', '-p', 'tsconfig.json'));
check('generated files', node('scripts/generate.mjs', '--check'));
check('format and lint', tool('@biomejs/biome/bin/biome', 'ci', '--colors=off', '.'));
const sources = ['schemas', 'registry', 'runtime', 'pipeline'];
check('directions', tool('dependency-cruiser/bin/dependency-cruise.mjs', ...sources));
check('dead code', tool('knip/bin/knip.js'));
if (check('tools', node('bin/laya-artifacts.js', 'install-tools', '--toolchain', 'portable'))) {
  const environment = JSON.parse(run(node('bin/laya-artifacts.js', 'info', 'laya-tiny'), true).stdout);
  const interpreter = join(environment.tools.python_convert.path, 'bin', 'python');
  python('converter', { file: interpreter, args: ['-I', '-X', 'utf8', 'test/python-convert/run.py'] });
  jest();
  for (const version of ['22.23.3', '24.21.0']) {
    const packaged = ['exec', '--yes', `--package=node@${version}`, '--', 'node', 'scripts/smoke.mjs'];
    check(`node ${version}`, { file: 'npm', args: packaged });
  }
}
rmSync(results, { recursive: true, force: true });
for (const failure of failures) console.log(`FAILED: ${failure}`);
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.failed === 0 && totals.passed > 0 ? 0 : 1;
