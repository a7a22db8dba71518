// The stress test of test/registry/stress.test.ts for as long as you like: node bench/stress.mjs [SECONDS, default 60]
// Eight processes build, import, check, load, prune and quarantine one artifact, a ninth is killed in the middle of a
// replacement, again and again. Ends with exit code 1 when anybody saw something that must not be.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const seconds = Number(process.argv[2] ?? 60);
const project = fileURLToPath(new URL('..', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'laya-stress-'));
const script = join(work, 'stress.mjs');
const banner = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";
const bundled = spawnSync(
  join(project, 'node_modules/esbuild/bin/esbuild'),
  [
    join(project, 'test/registry/children/stress.ts'),
    '--bundle',
    '--platform=node',
    '--format=esm',
    '--target=node20',
    '--log-level=error',
    `--outfile=${script}`,
    `--banner:js=${banner}`,
  ],
  { stdio: 'inherit' },
);
if (bundled.status !== 0) process.exit(1);

const root = join(work, 'root');
mkdirSync(root);
const totals = new Map();
let anomalies = 0;

/** Runs one process to its end; counts its rounds, prints what it saw. */
function run(role, limit, round = 0) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [script, root, role, limit, String(round)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part) => {
      text += part;
    });
    child.on('close', (code, signal) => {
      for (const line of text.trim().split('\n').filter(Boolean)) {
        const record = JSON.parse(line);
        if (record.rounds === undefined) {
          anomalies++;
          console.log(line);
        } else totals.set(role, (totals.get(role) ?? 0) + record.rounds);
      }
      if (signal === 'SIGKILL') totals.set(role, (totals.get(role) ?? 0) + 1);
      else if (code !== 0) anomalies++;
      resolve(signal);
    });
  });
}

await run('force', '1');
await run('archive', '1');
const started = performance.now();
const roles = ['build', 'import', 'rude', 'verify', 'load', 'read', 'quarantine', 'prune'];
const working = Promise.all(roles.map((role) => run(role, `${seconds}s`)));
for (let round = 0; performance.now() - started < seconds * 1000; round++) await run('killed', '1', round);
await working;
const quarantined = readdirSync(join(root, 'artifacts')).includes('quarantine')
  ? readdirSync(join(root, 'artifacts/quarantine')).length
  : 0;
const rounds = [...totals].map(([role, count]) => `${role} ${count}`).join(', ');
console.log(`${seconds} s: ${rounds}`);
console.log(`${anomalies} anomalies, ${quarantined} in quarantine`);
rmSync(work, { recursive: true, force: true });
process.exitCode = anomalies === 0 && quarantined === 0 ? 0 : 1;
