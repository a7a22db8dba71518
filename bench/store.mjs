// The store's commands, beside the Python runtime's own on the same files where it is given, and raw tools.
//   node bench/store.mjs [--runs 5] [--size-mb 300] [--peer-bench FOLDER --peer-python FILE]
// FOLDER holds peer_shim.py, which stubs laya-apple's Mac calls; FILE is the interpreter of an environment with it
// (bench/requirements-peer.lock). Prints medians of the wall time of whole processes.
import { spawnSync } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { findModel, GRAPH } from '../dist/registry/models.js';
import { hashTree } from '../dist/registry/tree.js';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '5' },
    'size-mb': { type: 'string', default: '300' },
    'peer-bench': { type: 'string' },
    'peer-python': { type: 'string' },
  },
});
const runs = Number(values.runs);
const bytes = Number(values['size-mb']) * 1_000_000;
const cli = fileURLToPath(new URL('../bin/laya-artifacts.js', import.meta.url));
const peer = values['peer-bench'] && values['peer-python'];
const model = findModel('laya');
const work = await mkdtemp(join(tmpdir(), 'laya-bench-'));

/** A manifest that both sides take for an artifact built on the Mac that peer_shim.py plays. */
function manifestOf(revision, sha256) {
  const ops = { ane: 10594, gpu: 0, cpu: 0 };
  return {
    format: 'laya-apple-artifact',
    format_version: 1,
    status: 'validated',
    created_at: '2026-01-02T03:04:05+00:00',
    source: { model: model.name, repo: model.repo, revision, weights_sha256: model.weightsSha256 },
    conversion: { laya_apple_version: '1.7.0', git_revision: null, packages: { coremltools: '9.0', torch: '2.7.0' } },
    artifact: {
      graph: GRAPH.name,
      length: 64,
      batch: 1,
      precision: GRAPH.precision,
      max_options: GRAPH.maxOptions,
      inputs: GRAPH.inputs,
      outputs: GRAPH.outputs,
    },
    placement: { compute_units: 'CPU_AND_NE', ops, cost_share: { ane: 1, gpu: 0, cpu: 0 }, transitions: 0 },
    platform: { soc: 'Apple M4 Max', macos: '27.0', macos_build: '26A428', coremltools: '9.0' },
    parity: {
      precision: 'float16',
      tolerance: 0.02,
      rows: 41,
      skipped_rows: 135,
      token_mismatch_cases: 0,
      prob_max_abs: 0.0093,
      action_prob_max_abs: 0,
      logit_max_abs: 0.36,
      hard_mismatches: 0,
      near_tie_flips: [],
      all_finite: true,
      repeat_identical: true,
      passed: true,
      reference: 'synthetic',
    },
    integrity: { artifact_sha256: sha256, tree_hash: 'laya-apple tree v1' },
    timings: { convert_s: 60, compile_s: 20, parity_s: 30, total_s: 120 },
  };
}

async function writeRandom(path, size) {
  const { randomBytes } = await import('node:crypto');
  const stream = createWriteStream(path);
  for (let left = size; left > 0; left -= 8 << 20)
    if (!stream.write(randomBytes(Math.min(left, 8 << 20))))
      await new Promise((resolve) => stream.once('drain', resolve));
  stream.end();
  await finished(stream);
}

async function writeArtifact(root, revision, size) {
  const folder = join(root, 'artifacts', model.name, revision.slice(0, 12), 'bc1s-masked-L64-B1');
  const compiled = join(folder, 'model.mlmodelc');
  await mkdir(join(compiled, 'weights'), { recursive: true });
  await mkdir(join(compiled, 'analytics'));
  await writeFile(join(compiled, 'coremldata.bin'), 'x'.repeat(1024));
  await writeFile(join(compiled, 'analytics', 'coremldata.bin'), 'y'.repeat(243));
  await writeFile(join(compiled, 'metadata.json'), '[{"generatedClassName": "model"}]');
  const line = '            tensor<fp16, [1, 1024, 1, 64]> x_cast_fp16 = conv(groups = g, pad = p, strides = s);\n';
  await writeFile(join(compiled, 'model.mil'), `program(1.3)\n{\n${line.repeat(size < 1e6 ? 10 : 20_000)}}\n`);
  await writeRandom(join(compiled, 'weights', 'weight.bin'), size);
  const { v1 } = await hashTree(compiled);
  await writeFile(join(folder, 'manifest.json'), `${JSON.stringify(manifestOf(revision, v1), null, 1)}\n`);
  return join(compiled, 'weights', 'weight.bin');
}

async function manyArtifacts(count) {
  const root = join(work, `many-${count}`);
  for (let i = 0; i < count; i++) {
    const revision = i === 0 ? model.revision : i.toString(16).padStart(12, '0') + '0'.repeat(28);
    await writeArtifact(root, revision, 2048);
  }
  return root;
}

/** Seconds of one run; throws when it fails. */
function seconds(file, args, root) {
  const env = { ...process.env, HF_HUB_OFFLINE: '1', PEER_FAKE_CT: '1', LAYA_APPLE_CACHE: root };
  const started = performance.now();
  const { status, stderr } = spawnSync(file, args, { env, stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' });
  if (status !== 0) throw new Error(`${file} ${args.join(' ')}: ${stderr.slice(-400)}`);
  return (performance.now() - started) / 1000;
}

const median = (all) => [...all].sort((a, b) => a - b)[all.length >> 1];

/** Runs the contestants in turn, so that all of them meet the same machine, and prints their medians. */
function race(label, root, contestants) {
  const times = contestants.map(() => []);
  for (let run = 0; run < runs; run++)
    for (const [i, [, file, args]] of contestants.entries()) times[i].push(seconds(file, args, root));
  const parts = contestants.map(
    ([name], i) => `${name} ${median(times[i]).toFixed(2)} (${Math.min(...times[i]).toFixed(2)})`,
  );
  console.log(`${label.padEnd(28)} ${parts.join('   ')}`);
}

const ours = (...args) => ['ours', process.execPath, [cli, ...args]];
const theirs = (...args) => {
  const shim = [
    '-c',
    `import sys; sys.path.insert(0, ${JSON.stringify(values['peer-bench'] ?? '')}); import runpy; sys.argv[0] = 'laya-apple'; runpy.run_module('peer_shim', run_name='__main__')`,
  ];
  return peer ? [['laya-apple', values['peer-python'], [...shim, 'artifacts', ...args]]] : [];
};

try {
  console.log(
    `${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)}, node ${process.version}, median (least) of ${runs} in seconds`,
  );
  const large = join(work, 'large');
  const weights = await writeArtifact(large, model.revision, bytes);
  race('help', large, [ours('--help')]);
  race(`verify, ${bytes / 1e6} MB`, large, [
    ours('verify', 'laya'),
    ...theirs('verify', 'laya', '--length', '64'),
    ['openssl dgst', 'openssl', ['dgst', '-sha256', weights]],
  ]);
  for (const count of [1000, 10_000]) {
    const root = await manyArtifacts(count);
    race(`list, ${count}`, root, [ours('list'), ...theirs('list')]);
    race(`prune plan, ${count}`, root, [ours('prune', '--superseded'), ...theirs('prune')]);
  }
  console.log(`load ${loadavg()[0].toFixed(1)}`);
} finally {
  await rm(work, { recursive: true, force: true });
}
