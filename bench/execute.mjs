// npm run bench:execute [-- --runs N]: a row of the full-size graph (L128) by the portable executor, beside PyTorch FP32.
// Called with --child it opens the model, runs the rows and prints its figures.
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureCompiler } from '../dist/pipeline/tools/compiler.js';
import { readCheckpoint } from '../dist/runtime/checkpoint.js';
import { HostWeights } from '../dist/runtime/host.js';
import { openMlmodelc } from '../dist/runtime/mil/session.js';
import { bigCheckpoint, context, median, megabytes, print, python, ratio, root, seconds, timed } from './lib.mjs';

const LENGTH = 128;
const { values: options } = parseArgs({
  options: { runs: { type: 'string', default: '9' }, child: { type: 'boolean' } },
});
const runs = Number(options.runs);
const checkpoint = await bigCheckpoint('F32');
const model = `${checkpoint}-L${LENGTH}.mlmodelc`;
const cache = { dir: join(context.tools, 'bench', 'portable'), key: `large-F32-seed1-L${LENGTH}` };

async function child() {
  const started = performance.now();
  const opened = await openMlmodelc(model, { cache });
  const load = (performance.now() - started) / 1000;
  const host = await HostWeights.open(await readCheckpoint(checkpoint));
  const ids = Array.from({ length: LENGTH }, (_, i) => (7 + 13 * i) % 50368);
  const features = { ...host.features({ ids, markers: [1, 2], qtype: 0 }, LENGTH, 3) };
  const rows = [];
  for (let i = 0; i <= runs; i++) {
    const before = performance.now();
    await opened.run(features);
    rows.push((performance.now() - before) / 1000);
  }
  console.log(
    JSON.stringify({ load_s: load, rows_s: rows.slice(1), peak_rss_bytes: process.resourceUsage().maxRSS * 1024 }),
  );
  await opened.release();
  await host.close();
}

async function compileModel() {
  if (existsSync(model)) return;
  const work = `${model}.partial-${process.pid}`;
  await mkdir(join(work, 'out'), { recursive: true });
  const files = {
    weights: 'model.safetensors',
    encoder_config: 'encoder/config.json',
    agent_config: 'rl_agent_config.json',
  };
  const paths = Object.entries(files).map(([name, path]) => [name, join(checkpoint, path)]);
  const order = { protocol: 1, checkpoint: Object.fromEntries(paths), out: join(work, 'out'), buckets: [LENGTH] };
  await writeFile(
    join(work, 'request.json'),
    JSON.stringify({ ...order, lock: null, layout_rows: null, max_options: 32 }),
  );
  const script = join(root, 'python-convert', 'convert.py');
  const convert = ['-I', '-X', 'utf8', script, join(work, 'request.json'), join(work, 'result.json')];
  await timed(await python('convert'), convert);
  const { executable } = await ensureCompiler(context);
  await timed(executable, [join(work, 'out', `L${LENGTH}.mlpackage`), join(work, 'model.mlmodelc')]);
  await rename(join(work, 'model.mlmodelc'), model);
  await rm(work, { recursive: true });
}

async function compare() {
  await compileModel();
  await rm(join(cache.dir, cache.key), { recursive: true, force: true });
  const ours = async () => {
    const args = [join(root, 'bench', 'execute.mjs'), '--child', '--runs', String(runs)];
    return JSON.parse((await timed(process.execPath, args)).stdout);
  };
  const [first, later] = [await ours(), await ours()];
  const args = ['-I', join(root, 'bench', 'execute_peer.py'), checkpoint, String(LENGTH), String(runs)];
  const theirs = JSON.parse((await timed(await python('peer'), args)).stdout.trim().split('\n').at(-1));
  const wall = median(theirs.rows_s);
  const row = (name, { load_s, rows_s, peak_rss_bytes }) => [
    name,
    seconds(load_s),
    seconds(median(rows_s)),
    ratio(median(rows_s), wall),
    megabytes(peak_rss_bytes),
  ];
  print(
    ['421 M PARAMETERS, L128', 'LOAD', `ROW, MEDIAN OF ${runs}`, 'OF PYTORCH', 'PEAK RSS'],
    [row('ours, first load', first), row('ours, later load', later), row('PyTorch FP32 (SDPA)', theirs)],
  );
}

await (options.child ? child() : compare());
