// `npm run check:workflows`: actionlint (built from its Go module) and zizmor (its wheel, by hash) over .github/workflows.
// Both are kept in the tools cache. Needs Go and Python; ends with a plain line `N passed, N failed`.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const workflows = join(root, '.github', 'workflows');
const lock = join(root, '.github', 'audit', 'requirements.lock');
const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
const tools = process.env.LAYA_ARTIFACTS_TOOLS || join(cache, 'laya-artifacts', 'tools');
/** Go checks the module against its public checksum database. */
const ACTIONLINT = 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12';
const totals = { passed: 0, failed: 0 };

const short = (content) => createHash('sha256').update(content).digest('hex').slice(0, 12);

function run(file, args, env = {}) {
  const result = spawnSync(file, args, {
    cwd: root,
    env: { ...process.env, NO_COLOR: '1', ...env },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return {
    ok: result.status === 0,
    text: `${result.stdout ?? ''}${result.stderr ?? ''}${result.error?.message ?? ''}`,
  };
}

function step(file, args, env) {
  const { ok, text } = run(file, args, env);
  if (!ok) throw new Error(`${file} ${args[0]}: ${text.trim().split('\n').slice(-20).join('\n')}`);
}

/** Fills a folder under a temporary name; it gets its own only when it is whole. */
function installOnce(name, fill) {
  const target = join(tools, name);
  if (existsSync(target)) return target;
  mkdirSync(tools, { recursive: true });
  const partial = mkdtempSync(join(tools, `.${name}-`));
  try {
    fill(partial);
    renameSync(partial, target);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  return target;
}

function check(name, file, args) {
  const { ok, text } = run(file, args);
  totals[ok ? 'passed' : 'failed'] += 1;
  console.log(`${ok ? 'ok' : 'FAILED'}: ${name}${ok ? '' : `\n${text.trim()}`}`);
}

function checkAll() {
  const go = installOnce(`actionlint-${short(ACTIONLINT)}`, (folder) =>
    step('go', ['install', ACTIONLINT], { GOBIN: folder, GOFLAGS: '-trimpath' }),
  );
  const audit = installOnce(`zizmor-${short(readFileSync(lock))}`, (folder) => {
    const pip = ['--require-hashes', '--only-binary', ':all:', '--no-deps', '--disable-pip-version-check'];
    step('python3', ['-I', '-m', 'pip', 'install', '--no-input', ...pip, '--target', folder, '-r', lock]);
  });
  const files = readdirSync(workflows).filter((name) => name.endsWith('.yml'));
  for (const name of files) {
    check(`actionlint ${name}`, join(go, 'actionlint'), [join(workflows, name)]);
    const strict = ['--offline', '--no-progress', '--persona=pedantic'];
    check(`zizmor ${name}`, join(audit, 'bin', 'zizmor'), [...strict, join(workflows, name)]);
  }
  if (files.length === 0) totals.failed += 1;
}

try {
  checkAll();
} catch (error) {
  totals.failed += 1;
  console.log(`FAILED: the tools can't be installed (Go and Python are needed)\n${error.message}`);
}
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.failed === 0 ? 0 : 1;
