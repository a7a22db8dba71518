// One artifact built, verified and asked by the Node that runs this: `npm test` calls it with every supported major.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const cwd = fileURLToPath(new URL('..', import.meta.url));
const cache = mkdtempSync(join(tmpdir(), 'laya-smoke-'));
const env = { ...process.env, LAYA_APPLE_CACHE: cache };
const cli = (...args) =>
  execFileSync(process.execPath, ['bin/laya-artifacts.js', ...args], { cwd, env, encoding: 'utf8' });
try {
  const [row] = JSON.parse(cli('build', 'laya-tiny', '--length', '64', '--json')).rows;
  const [verified] = JSON.parse(cli('verify', '--json'));
  const ask = ['--context', 'I was charged twice and I am furious.', '--questions', '["Is the customer angry?"]'];
  const answer = JSON.parse(cli('predict', 'laya-tiny', ...ask)).answers['Is the customer angry?'];
  console.log(`node ${process.version}: ${row.outcome}, verified ${verified.ok}, angry ${answer.noul}`);
  process.exitCode = row.outcome === 'registered' && verified.ok && answer.noul > 0.5 ? 0 : 1;
} finally {
  rmSync(cache, { recursive: true, force: true });
}
