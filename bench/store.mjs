// npm run bench:store [-- --runs 5] [--megabytes 300] [--most 10000] [--peer-python PATH] [--no-peer]
// The store's commands beside laya-apple's own on the same files, and a raw tool. Wall seconds of whole processes; the
// contestants of a row take turns, so that all of them meet the same machine.

import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { findModel, GRAPH } from '../dist/registry/models.js';
import { hashTree } from '../dist/registry/tree.js';
import { load, median, print, python, root, timed } from './lib.mjs';

const { values: options } = parseArgs({
  options: {
    runs: { type: 'string', default: '5' },
    megabytes: { type: 'string', default: '300' },
    most: { type: 'string', default: '10000' },
    'peer-python': { type: 'string' },
    'no-peer': { type: 'boolean', default: false },
  },
});
const model = findModel('laya');
const cli = join(root, 'bin', 'laya-artifacts.js');
const peerCli = join(root, 'test', 'peer', 'laya_apple_cli.py');
const peerPython = options['no-peer'] ? undefined : (options['peer-python'] ?? (await python('peer')));

/** A manifest that both sides take for an artifact built on the Mac that the peer's stubs play. */
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

async function writeMany(folder, count) {
  for (let i = 0; i < count; i++) {
    const revision = i === 0 ? model.revision : i.toString(16).padStart(12, '0') + '0'.repeat(28);
    await writeArtifact(folder, revision, 2048);
  }
}

const ours = (...args) => ({ name: 'ours', file: process.execPath, args: [cli, ...args] });
const theirs = (...args) =>
  peerPython ? [{ name: 'laya-apple', file: peerPython, args: [peerCli, 'artifacts', ...args] }] : [];

const rows = [];

/** Runs the contestants in turn and notes their medians. */
async function race(what, store, contestants) {
  const env = { ...process.env, HF_HUB_OFFLINE: '1', LAYA_APPLE_CACHE: store };
  const seconds = contestants.map(() => []);
  for (let run = 0; run < Number(options.runs); run++)
    for (const [i, { file, args }] of contestants.entries())
      seconds[i].push((await timed(file, args, { env, stdio: ['ignore', 'pipe', 'ignore'] })).seconds);
  for (const [i, { name }] of contestants.entries())
    rows.push([what, name, median(seconds[i]).toFixed(2), Math.min(...seconds[i]).toFixed(2)]);
}

const work = await mkdtemp(join(tmpdir(), 'laya-bench-store-'));
try {
  console.log(load());
  const large = join(work, 'large');
  const weights = await writeArtifact(large, model.revision, Number(options.megabytes) * 1e6);
  await race('help', large, [ours('--help')]);
  await race(`verify, ${options.megabytes} MB`, large, [
    ours('verify', 'laya'),
    ...theirs('verify', 'laya', '--length', '64'),
    { name: 'openssl dgst', file: 'openssl', args: ['dgst', '-sha256', weights] },
  ]);
  for (const count of new Set([1000, Number(options.most)])) {
    const many = join(work, `many-${count}`);
    await writeMany(many, count);
    await race(`list, ${count}`, many, [ours('list'), ...theirs('list')]);
    await race(`prune plan, ${count}`, many, [ours('prune', '--superseded'), ...theirs('prune')]);
  }
  print(['WHAT', 'WHO', 'MEDIAN S', 'LEAST S'], rows);
} finally {
  await rm(work, { recursive: true, force: true });
}
