// npm run bench:start: how quickly commands start, and a whole build of laya-tiny with the tools installed.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median, print, repeat, root, seconds, timed } from './lib.mjs';

const cli = join(root, 'bin', 'laya-artifacts.js');
const cache = await mkdtemp(join(tmpdir(), 'laya-bench-start-'));
const env = { ...process.env, LAYA_APPLE_CACHE: cache };
const run = (args) => timed(process.execPath, args, { env });
const middle = async (times, args) => median((await repeat(times, () => run(args))).map((one) => one.seconds));

const builds = await repeat(3, () => run([cli, 'build', 'laya-tiny', '--force', '--json']));
const report = JSON.parse(builds.at(-1).stdout);
const questions = '["Is the message about billing?"]';
const predict = [cli, 'predict', 'laya-tiny', '--context', 'I was charged twice.', '--questions', questions];
const rows = [
  ['node -e 0', await middle(15, ['-e', '0'])],
  ['--help', await middle(15, [cli, '--help'])],
  ['list', await middle(9, [cli, 'list'])],
  ['predict laya-tiny, cold', await middle(9, predict)],
  ['build laya-tiny, 4 buckets', median(builds.map((one) => one.seconds))],
  ['build again, nothing to do', await middle(5, [cli, 'build', 'laya-tiny'])],
];
print(
  ['COMMAND', 'WALL, MEDIAN'],
  rows.map(([name, value]) => [name, seconds(value)]),
);
console.log(`rows through the gate: ${report.rows.map((row) => `L${row.bucket} ${row.rows}`).join(', ')}`);
await rm(cache, { recursive: true });
