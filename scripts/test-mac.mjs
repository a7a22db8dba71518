// `npm run test:mac`: builds laya-probe with this Mac's Swift, runs its own tests, then holds Core ML's numbers on the CPU
// alone against every golden row of laya-tiny, through the protocol. It needs no Neural Engine and proves nothing about
// one. `--probe PATH` takes a laya-probe that is there, on any system, and skips what needs Swift. Ends with a plain line
// `N passed, N failed`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const sources = join(root, 'swift-probe');
const work = mkdtempSync(join(tmpdir(), 'laya-mac-'));
const scratch = join(work, 'scratch');
const given = process.argv.indexOf('--probe');
const probe = given > 0 ? process.argv[given + 1] : join(scratch, 'release', 'laya-probe');
const env = { ...process.env, LAYA_APPLE_CACHE: join(work, 'store'), NODE_NO_WARNINGS: '1' };
const totals = { passed: 0, failed: 0 };
const from = (path) => import(new URL(`../dist/${path}`, import.meta.url).href);

function check(name, file, args, more = {}) {
  const { status } = spawnSync(file, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], env, ...more });
  count(name, status === 0);
}

function count(name, ok, note = '') {
  totals[ok ? 'passed' : 'failed'] += 1;
  console.log(`${ok ? 'ok' : 'FAILED'}: ${name}${note}`);
}

/** The parity gate's figures of one bucket, with laya-probe on the CPU in the executor's place. */
async function numerics(bucket, model) {
  const [{ openProbe }, { portableToolchain }, { resolve }, { proveParity }, { findModel }, { toolsRoot }] =
    await Promise.all(
      [
        'runtime/probe/client.js',
        'pipeline/toolchain/portable.js',
        'pipeline/stages/resolve.js',
        'pipeline/stages/parity.js',
        'registry/models.js',
        'registry/paths.js',
      ].map(from),
    );
  const signal = new AbortController().signal;
  const accept = given > 0 ? ['apple', 'stub', 'simulated'] : ['apple'];
  const options = { executable: probe, units: 'cpuOnly', accept, env: process.env };
  const open = async (path) => (await openProbe({ ...options, models: [path] })).models[0];
  const toolchain = { ...portableToolchain(), open };
  const place = { root: env.LAYA_APPLE_CACHE, tools: toolsRoot(process.env) };
  const context = { env: process.env, ...place, offline: true, signal, emit: () => undefined };
  const order = { model: findModel('laya-tiny'), buckets: [bucket], force: false, toolchain };
  const resolved = await resolve(order, context);
  return proveParity({ resolved, bucket, model, temp: work }, context);
}

try {
  if (given < 0) {
    check('swift build', 'swift', ['build', '-c', 'release', '--package-path', sources, '--scratch-path', scratch]);
    check('swift test', 'swift', ['test', '--package-path', sources, '--scratch-path', join(work, 'tests')]);
    check('laya-probe device', probe, ['device']);
  }
  const build = ['bin/laya-artifacts.js', 'build', 'laya-tiny', '--toolchain', 'portable', '--length', '64,256'];
  check('build laya-tiny', process.execPath, build);
  const list = ['bin/laya-artifacts.js', 'list', '--json'];
  const { stdout } = spawnSync(process.execPath, list, { cwd: root, env, encoding: 'utf8' });
  const built = JSON.parse(stdout || '[]');
  count('both buckets are there', built.length === 2);
  for (const { bucket, folder } of built) {
    const name = `L${bucket} on the CPU`;
    try {
      const { rows, prob_max_abs: largest } = await numerics(bucket, join(folder, 'model.mlmodelc'));
      count(name, rows > 0, `: ${rows} rows, largest difference of a probability ${largest.toFixed(5)}`);
    } catch (error) {
      count(name, false, `: ${error.code ?? ''} ${error.message}`);
    }
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.failed === 0 && totals.passed > 0 ? 0 : 1;
