// `npm run test:swift`: builds and tests swift-probe on Linux, where a stand-in takes Core ML's name, and drives the built
// laya-probe with the protocol's conformance suite and the TypeScript client. Ends with a plain line `N passed, N failed`.
// `--syntax`: only what needs no compiler. `--chroot-ready`: exit code 0 when the chroot is there. `--bench`: only
// bench/probe.mjs, of the laya-probe that was built before.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { apiFaults } from './swift-api.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const probe = join(root, 'swift-probe');
const short = (text) => createHash('sha256').update(text).digest('hex').slice(0, 12);

const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
const tools = process.env.LAYA_ARTIFACTS_TOOLS || join(cache, 'laya-artifacts', 'tools');
const RECIPE = ['--variant=apt', '--include=swiftlang,libc6-dev,libstdc++-14-dev,ca-certificates', 'trixie'];
const chroot = join(tools, `swift-trixie-${short(RECIPE.join('\n'))}`);
/** Where a checkout's build products are, inside the chroot. */
const scratch = `/build/${short(root)}`;
const LOADERS = {
  x64: ['lib64/ld-linux-x86-64.so.2', 'usr/lib/x86_64-linux-gnu'],
  arm64: ['lib/ld-linux-aarch64.so.1', 'usr/lib/aarch64-linux-gnu'],
};
/** Keeps the mounts in a namespace of their own: nothing is left mounted, whatever happens. $1 chroot, $2 sources. */
const ENTER = `mount --make-rprivate / && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
  mkdir -p "$1/mnt/swift-probe" && mount --bind "$2" "$1/mnt/swift-probe" && root="$1" && shift 2 &&
  exec chroot "$root" /usr/bin/env -i HOME=/build PATH=/usr/bin:/bin LC_ALL=C.UTF-8 sh -c 'cd /mnt/swift-probe && exec "$@"' sh "$@"`;

const totals = { passed: 0, failed: 0 };

class Stop extends Error {}

function run(file, args, options = {}) {
  const result = spawnSync(file, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    ...options,
  });
  return { status: result.status, text: `${result.stdout ?? ''}${result.stderr ?? ''}${result.error?.message ?? ''}` };
}

function count(name, passed, failed, text = '') {
  totals.passed += passed;
  totals.failed += failed;
  if (failed > 0) console.log(text.trim().split('\n').slice(-60).join('\n'));
  console.log(
    `${failed === 0 ? 'ok' : 'FAILED'}: ${name}${passed + failed > 1 ? ` (${passed} passed, ${failed} failed)` : ''}`,
  );
}

/** One check counts as one test. */
const check = (name, { status, text }) => count(name, status === 0 ? 1 : 0, status === 0 ? 0 : 1, text);

const inChroot = (...command) => run('unshare', ['--mount', 'sh', '-c', ENTER, 'sh', chroot, probe, ...command]);

/** Makes the chroot under a private name and gives it its own by one rename, so that one that is there is complete. */
function ensureChroot() {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    throw new Stop('the Swift tests need Linux and root, for a chroot; run them in a container, or only: --syntax');
  if (existsSync(chroot)) return;
  if (run('mmdebstrap', ['--version']).status !== 0) {
    console.log('installing mmdebstrap');
    const install = ['install', '-y', '-q', '--no-install-recommends', 'mmdebstrap', 'debian-archive-keyring'];
    run('apt-get', ['update', '-q']);
    const { status, text } = run('apt-get', install);
    if (status !== 0)
      throw new Stop(`mmdebstrap can't be installed: apt-get ${install.join(' ')}\n${text.slice(-600)}`);
  }
  console.log(`making ${chroot}: 4 to 5 minutes, 2.6 GB`);
  mkdirSync(tools, { recursive: true });
  const partial = `${chroot}.partial-${process.pid}`;
  const { status, text } = run('mmdebstrap', [...RECIPE, partial], { cwd: '/' });
  if (status !== 0) {
    rmSync(partial, { recursive: true, force: true });
    throw new Stop(`mmdebstrap failed\n${text.slice(-1500)}`);
  }
  renameSync(partial, chroot);
}

/** Swift sources, wherever they are. */
function sources() {
  const names = readdirSync(probe, { recursive: true }).filter((name) => name.endsWith('.swift'));
  return names.filter((name) => !name.startsWith('.build')).map((name) => join(probe, name));
}

/** The parser has a small environment of its own, keyed by its lock; LAYA_PYTHON names another interpreter. */
function syntax() {
  const lock = join(probe, 'syntax', 'requirements.lock');
  const venv = join(tools, `swift-syntax-${short(readFileSync(lock))}`);
  const python = join(venv, 'bin', 'python');
  if (!existsSync(venv)) {
    const partial = `${venv}.partial-${process.pid}`;
    const base = process.env.LAYA_PYTHON || 'python3';
    const pip = ['-I', '-m', 'pip', 'install', '-q', '--no-input', '--disable-pip-version-check', '--no-deps'];
    const exact = ['--require-hashes', '--only-binary', ':all:', '-r', lock];
    const made = run(base, ['-I', '-m', 'venv', partial]);
    const filled = made.status === 0 ? run(join(partial, 'bin', 'python'), [...pip, ...exact]) : made;
    if (filled.status === 0) renameSync(partial, venv);
    else {
      rmSync(partial, { recursive: true, force: true });
      check('syntax', filled);
      return;
    }
  }
  check('syntax', run(python, ['-I', join(probe, 'syntax', 'check.py'), ...sources()]));
}

function swiftTests() {
  const { status, text } = inChroot('swift', 'test', '--scratch-path', scratch);
  const [, executed = '0', failures = '0'] =
    /'All tests' (?:passed|failed) at[^\n]*\n\s*Executed (\d+) tests?, with (\d+) failure/.exec(text) ?? [];
  const failed = Math.max(new Set(text.match(/Test Case '[^']+' failed/g)).size, status === 0 ? Number(failures) : 1);
  count('swift test', Math.max(0, Number(executed) - failed), failed, text);
  if (executed === '0') count('swift test ran', 0, 1, text);
}

/** The program on this system: the chroot's own loader and libraries run it. */
const script = join(chroot, scratch, 'laya-probe');

function writeScript() {
  const [loader, libraries] = LOADERS[process.arch] ?? LOADERS.x64;
  const swift = ['usr/lib/swift/linux', 'usr/libexec/swift/lib/swift/linux'];
  const paths = [libraries, ...swift].map((path) => join(chroot, path)).join(':');
  const program = join(chroot, scratch, 'release', 'laya-probe');
  const text = `#!/bin/sh\nexec '${join(chroot, loader)}' --library-path '${paths}' '${program}' "$@"\n`;
  writeFileSync(script, text, { mode: 0o755 });
}

function conformance() {
  const folder = mkdtempSync(join(tmpdir(), 'laya-swift-'));
  const report = join(folder, 'jest.json');
  const jest = [
    '--experimental-vm-modules',
    'node_modules/jest/bin/jest.js',
    '--json',
    `--outputFile=${report}`,
    'test/probe',
  ];
  const env = { ...process.env, NODE_NO_WARNINGS: '1', LAYA_PROBE_UNDER_TEST: script };
  const { status, text } = run(process.execPath, jest, { cwd: root, env });
  const found = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : {};
  const failed = (found.numFailedTests ?? 0) + (found.numRuntimeErrorTestSuites ?? 0) + (found.numPendingTests ?? 0);
  rmSync(folder, { recursive: true, force: true });
  count('conformance of laya-probe', found.numPassedTests ?? 0, Math.max(failed, status === 0 ? 0 : 1), text);
}

function compiled() {
  ensureChroot();
  check(
    'swift format lint',
    inChroot('swift', 'format', 'lint', '--strict', '-r', '-p', 'Sources', 'Tests', 'Stub', 'Package.swift'),
  );
  swiftTests();
  const build = inChroot('swift', 'build', '-c', 'release', '--scratch-path', scratch);
  check('swift build -c release', build);
  if (build.status !== 0) return;
  writeScript();
  conformance();
}

if (process.argv.includes('--chroot-ready')) process.exit(existsSync(chroot) ? 0 : 1);
if (process.argv.includes('--bench')) {
  process.env.LAYA_PROBE_UNDER_TEST ||= script;
  await import('../bench/probe.mjs');
  process.exit();
}
try {
  const faults = apiFaults(probe);
  check('Core ML names', { status: faults.length, text: faults.join('\n') });
  syntax();
  if (!process.argv.includes('--syntax')) compiled();
} catch (error) {
  if (!(error instanceof Stop)) throw error;
  count(error.message, 0, 1);
}
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.failed === 0 && totals.passed > 0 ? 0 : 1;
