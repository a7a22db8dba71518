// npm run bench:convert [-- --dtype F16|F32] [--runs N] [--peer-runs N]
// Converts one bucket of a full-size random checkpoint with this project and with laya-apple's traced conversion.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bigCheckpoint, load, median, megabytes, print, python, ratio, repeat, root, seconds, timed } from './lib.mjs';

const { values: options } = parseArgs({
  options: {
    dtype: { type: 'string', default: 'F32' },
    runs: { type: 'string', default: '3' },
    'peer-runs': { type: 'string', default: '1' },
  },
});

const checkpoint = await bigCheckpoint(options.dtype);
const work = join(tmpdir(), `laya-bench-convert-${process.pid}`);
console.log(`checkpoint: 421 M parameters, ${options.dtype}; ${load()}`);

async function ours(buckets) {
  const out = join(work, 'ours');
  await mkdir(out, { recursive: true });
  const [request, result] = [join(work, 'request.json'), join(work, 'result.json')];
  const files = {
    weights: 'model.safetensors',
    encoder_config: 'encoder/config.json',
    agent_config: 'rl_agent_config.json',
  };
  const paths = Object.entries(files).map(([name, path]) => [name, join(checkpoint, path)]);
  const order = { protocol: 1, checkpoint: Object.fromEntries(paths), out, buckets, lock: null, layout_rows: null };
  await writeFile(request, JSON.stringify({ ...order, max_options: 32 }));
  const script = join(root, 'python-convert', 'convert.py');
  const run = await timed(await python('convert'), ['-I', '-X', 'utf8', script, request, result]);
  const record = JSON.parse(await readFile(result, 'utf8'));
  await rm(work, { recursive: true });
  return { wall_s: run.seconds, cpu_s: record.seconds.cpu ?? null, peak_rss_bytes: record.peak_rss_bytes };
}

async function peer() {
  await mkdir(work, { recursive: true });
  const args = ['-I', join(root, 'bench', 'convert_peer.py'), checkpoint, '128', join(work, 'peer.mlpackage')];
  const run = await timed(await python('peer'), args);
  await rm(work, { recursive: true });
  return { ...JSON.parse(run.stdout.trim().split('\n').at(-1)), wall_s: run.seconds };
}

const middle = (runs, field) => median(runs.map((run) => run[field]));
const one = await repeat(Number(options.runs), () => ours([128]));
const three = await repeat(Number(options.runs), () => ours([64, 96, 128]));
const theirs = await repeat(Number(options['peer-runs']), peer);
const wall = middle(theirs, 'wall_s');
const row = (name, runs) => [
  name,
  String(runs.length),
  seconds(middle(runs, 'wall_s')),
  megabytes(middle(runs, 'peak_rss_bytes')),
  ratio(middle(runs, 'wall_s'), wall),
];
print(
  ['CONVERSION', 'RUNS', 'WALL', 'PEAK RSS', 'OF LAYA-APPLE'],
  [row('ours, L128', one), row('ours, L64+L96+L128', three), row('laya-apple, L128', theirs)],
);
console.log(`three buckets take ${ratio(middle(three, 'wall_s'), middle(one, 'wall_s'))} times one`);
