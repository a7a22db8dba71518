// npm run bench:fetch [-- --kind fp16|random] [--megabytes N] [--runs N] [--peer-python PATH] [--folder PATH]
// Fetches one large archive from a hub on this machine: with this project (download, verify, unpack, register; the gates
// left out), and with huggingface_hub's snapshot_download followed by `tar xzf`. Runs alternate; wall times hold the
// start of the process. Each run begins without a cache.
import { spawn } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { openHub } from '../dist/pipeline/hub.js';
import { writeArchive } from '../dist/registry/archive/write.js';
import { commitSet } from '../dist/registry/commit-set.js';
import { unpackPublished } from '../dist/registry/index/archive.js';
import { archivePath, entryOf, indexText, mergeIndex } from '../dist/registry/index/prebuilt.js';
import { openIndex } from '../dist/registry/index/repository.js';
import { findModel, GRAPH } from '../dist/registry/models.js';
import { artifactFolder } from '../dist/registry/paths.js';
import { checkManifest } from '../dist/registry/read.js';
import { openStaging } from '../dist/registry/staging.js';
import { hashTree, TREE_V1 } from '../dist/registry/tree.js';
import { context, load, median, megabytes, print, python, ratio, root, seconds, timed } from './lib.mjs';

const { values: options } = parseArgs({
  options: {
    kind: { type: 'string', default: 'fp16' },
    megabytes: { type: 'string', default: '700' },
    runs: { type: 'string', default: '3' },
    'peer-python': { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
    fetch: { type: 'string' },
    serve: { type: 'string' },
  },
});
const REPO = 'owner/prebuilt';
const key = { model: findModel('laya'), bucket: 64 };
const script = join(root, 'bench', 'fetch.mjs');

/** What `fetch` does but for the checkpoint and the gates. Prints the peak memory in bytes. */
async function fetchOnly(target) {
  const { env, signal } = context;
  const hub = await openHub({ ...context, root: target, env: { ...env, HF_HUB_CACHE: join(target, 'hub') } });
  const opened = await openIndex(hub, REPO, 'main');
  const [entry] = opened.index.artifacts;
  const staging = await openStaging(target, 'fetch', new Date());
  const into = join(staging.path, 'buckets', 'L64');
  const onManifest = (manifest) => checkManifest(key, manifest, entry.path);
  const order = {
    entry,
    opened,
    transport: hub.transport,
    into,
    onManifest,
    onBytes: () => {},
    signal,
    now: new Date(),
  };
  const { manifest } = await unpackPublished(order);
  await writeFile(join(into, 'manifest.json'), `${JSON.stringify(manifest, null, 1)}\n`);
  await commitSet(target, [{ key, folder: into, replace: false }], { now: () => new Date() });
  await staging.remove();
  console.log(process.resourceUsage().maxRSS * 1024);
}

/** The project's test hub with one published archive, in a process of its own. Prints its URL. */
async function serve(folder) {
  const outfile = join(folder, 'hub.mjs');
  const entryPoints = [join(root, 'test', 'hub', 'server.ts')];
  await build({ entryPoints, bundle: true, platform: 'node', format: 'esm', outfile, logLevel: 'error' });
  const { TestHub } = await import(outfile);
  const hub = await TestHub.start();
  const [entry, index, bytes] = await Promise.all(
    ['entry.json', 'index.json', 'a.tar.gz'].map((n) => readFile(join(folder, n))),
  );
  hub.repository(REPO).commit({ 'index.json': index, [JSON.parse(entry).path]: { bytes, lfs: true } });
  console.log(hub.url);
}

async function makeArchive(folder) {
  const store = join(folder, 'store');
  const artifact = artifactFolder(store, key);
  const model = join(artifact, 'model.mlmodelc');
  await mkdir(join(model, 'weights'), { recursive: true });
  await writeFile(join(model, 'coremldata.bin'), randomFillSync(Buffer.alloc(1024)));
  await writeFile(join(model, 'metadata.json'), '[{"generatedClassName": "model"}]\n');
  await writeFile(join(model, 'model.mil'), 'program(1.3)\n{\n}\n');
  const weights = await open(join(model, 'weights', 'weight.bin'), 'wx');
  const block = blockOf(16e6);
  for (let left = Number(options.megabytes) * 1e6; left > 0; left -= block.length)
    await weights.write(block.subarray(0, Math.min(left, block.length)));
  await weights.close();
  const manifest = manifestOf((await hashTree(model)).v1);
  await writeFile(join(artifact, 'manifest.json'), `${JSON.stringify(manifest, null, 1)}\n`);
  const written = await writeArchive(key, artifact, join(folder, 'a.tar.gz'), { threads: 2, signal: context.signal });
  const entry = entryOf(archivePath(key, manifest), manifest, written);
  await writeFile(join(folder, 'entry.json'), JSON.stringify(entry));
  await writeFile(join(folder, 'index.json'), indexText(mergeIndex(undefined, [entry], new Date())));
  return entry;
}

/** Noise, or half floats as small as trained weights are. */
function blockOf(bytes) {
  const noise = randomFillSync(Buffer.alloc(bytes));
  if (options.kind === 'random') return noise;
  for (let i = 1; i < bytes; i += 2) noise[i] = (noise[i] & 0x80) | 0x20 | (noise[i] & noise[i - 1] & 0x0f);
  return noise;
}

function manifestOf(v1) {
  const { name: model, repo, revision, weightsSha256 } = key.model;
  return {
    format: 'laya-apple-artifact',
    format_version: 1,
    status: 'validated',
    source: { model, repo, revision, weights_sha256: weightsSha256 },
    artifact: { graph: GRAPH.name, length: 64, batch: 1, precision: 'float16', max_options: 32 },
    placement: { compute_units: 'CPU_AND_NE', ops: { ane: 3, gpu: 0, cpu: 0 }, transitions: 0 },
    platform: { soc: 'Apple M4 Max', macos: '27.0', macos_build: '26A428', coremltools: '9.0' },
    parity: { passed: true, tolerance: 0.02, rows: 41, prob_max_abs: 0.0093 },
    integrity: { artifact_sha256: v1, tree_hash: TREE_V1 },
  };
}

async function startHub(folder) {
  const child = spawn(process.execPath, [script, '--serve', folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) return { url: line, stop: () => child.kill() };
  throw new Error('the hub did not start');
}

async function measure(folder, { url }, { path, bytes }) {
  const peer = options['peer-python'] ?? (await python('peer'));
  const fresh = join(folder, 'fresh');
  const cache = join(fresh, 'hub');
  const env = { ...process.env, HF_ENDPOINT: url, HF_HUB_CACHE: cache, HF_HUB_DISABLE_XET: '1', HF_TOKEN: '' };
  const quiet = { HF_HUB_DISABLE_TELEMETRY: '1', HF_HUB_DISABLE_PROGRESS_BARS: '1' };
  const download = `import huggingface_hub as h; print(h.snapshot_download("${REPO}"))`;
  const ours = () => timed(process.execPath, [script, '--fetch', fresh], { env });
  const theirs = async () => {
    const got = await timed(peer, ['-c', download], { env: { ...env, ...quiet } });
    const unpack = await timed('tar', ['xzf', join(got.stdout.trim(), path), '-C', fresh]);
    return { seconds: got.seconds + unpack.seconds, download: got.seconds, unpack: unpack.seconds };
  };
  const runs = { ours: [], theirs: [] };
  for (let i = 0; i < Number(options.runs); i++)
    for (const [name, step] of i % 2
      ? [
          ['theirs', theirs],
          ['ours', ours],
        ]
      : [
          ['ours', ours],
          ['theirs', theirs],
        ]) {
      await rm(fresh, { recursive: true, force: true });
      await mkdir(fresh);
      await timed('sync', []);
      runs[name].push(await step());
    }
  const wall = (name, field = 'seconds') => median(runs[name].map((run) => run[field]));
  print(
    ['STEP', 'RUNS', 'MEDIAN', 'TO PEER'],
    [
      [
        'ours: download, verify, unpack, register',
        options.runs,
        seconds(wall('ours')),
        ratio(wall('ours'), wall('theirs')),
      ],
      ['snapshot_download + tar xzf', options.runs, seconds(wall('theirs')), '1.000'],
      ['  snapshot_download', options.runs, seconds(wall('theirs', 'download')), '-'],
      ['  tar xzf', options.runs, seconds(wall('theirs', 'unpack')), '-'],
    ],
  );
  const peaks = runs.ours.map(({ stdout }) => Number(stdout));
  console.log(`archive ${megabytes(bytes)}; peak memory of ours ${megabytes(Math.max(...peaks))}`);
}

if (options.fetch) await fetchOnly(options.fetch);
else if (options.serve) await serve(options.serve);
else {
  const folder = join(options.folder, `laya-bench-fetch-${process.pid}`);
  console.log(`${options.megabytes} MB, ${options.kind}, ${options.runs} runs each; ${load()}`);
  await mkdir(folder, { recursive: true });
  try {
    const entry = await makeArchive(folder);
    const hub = await startHub(folder);
    await measure(folder, hub, entry).finally(hub.stop);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
