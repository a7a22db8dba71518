// npm run bench:archive [-- --kind random|fp16] [--megabytes N] [--runs N] [--peer-python PATH] [--folder PATH]
// Exports and imports one large artifact with this project, with laya-apple's own code, and with raw tools.
// Gates and checkpoint are left out on both sides. Wall times hold the start of the process.
import { randomFillSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, open, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readArchive } from '../dist/registry/archive/read.js';
import { installArtifact } from '../dist/registry/install.js';
import { findModel, GRAPH } from '../dist/registry/models.js';
import { artifactFolder } from '../dist/registry/paths.js';
import { checkManifest } from '../dist/registry/read.js';
import { openStaging } from '../dist/registry/staging.js';
import { hashTree, TREE_V1 } from '../dist/registry/tree.js';
import { load, median, megabytes, print, python, ratio, repeat, root, seconds, timed } from './lib.mjs';

const { values: options } = parseArgs({
  options: {
    kind: { type: 'string', default: 'random' },
    megabytes: { type: 'string', default: '300' },
    runs: { type: 'string', default: '3' },
    'peer-python': { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
    import: { type: 'string' },
    force: { type: 'boolean', default: false },
  },
});
const key = { model: findModel('laya'), bucket: 64 };
const signal = new AbortController().signal;
const work = join(options.folder, `laya-bench-archive-${process.pid}`);
const store = join(work, 'store');
const script = join(root, 'bench', 'archive.mjs');
const cli = join(root, 'bin', 'laya-artifacts.js');

/** What `import` does but for the checkpoint and the gates. */
async function importOnly(file, replace) {
  const target = process.env.LAYA_APPLE_CACHE;
  const staging = await openStaging(target, 'import', new Date());
  const folder = join(staging.path, 'buckets', 'imported');
  await mkdir(folder, { recursive: true });
  const onManifest = (manifest) => checkManifest(key, manifest, file);
  const { manifest } = await readArchive(file, { signal, into: folder, onManifest });
  const text = `${JSON.stringify(manifest, null, 1)}\n`;
  await writeFile(join(folder, 'manifest.json'), text);
  await installArtifact(target, key, folder, async () => text, { replace, now: () => new Date() });
  await staging.remove();
  console.log(process.resourceUsage().maxRSS * 1024);
}

/** Half floats like trained weights, or noise; a program text of 2.6 MB beside them. */
async function makeArtifact() {
  const folder = artifactFolder(store, key);
  const model = join(folder, 'model.mlmodelc');
  await mkdir(join(model, 'weights'), { recursive: true });
  await writeFile(join(model, 'coremldata.bin'), randomFillSync(Buffer.alloc(1024)));
  await writeFile(join(model, 'metadata.json'), '[{"generatedClassName": "model"}]\n');
  const line = (i) =>
    `    tensor<fp16, [1, 1024, 1, 64]> x_${i}_cast_fp16 = conv(groups = g, pad = p, weight = w_${i}, x = x_${i - 1});\n`;
  await writeFile(
    join(model, 'model.mil'),
    `program(1.3)\n{\n${Array.from({ length: 27_000 }, (_, i) => line(i)).join('')}}\n`,
  );
  const weights = await open(join(model, 'weights', 'weight.bin'), 'wx');
  for (let left = Number(options.megabytes) * 1e6; left > 0; left -= 4e6)
    await weights.write(piece(Math.min(left, 4e6)));
  await weights.close();
  const { v1 } = await hashTree(model);
  await writeFile(join(folder, 'manifest.json'), `${JSON.stringify(manifestOf(v1), null, 1)}\n`);
}

function piece(bytes) {
  const noise = randomFillSync(Buffer.alloc(bytes));
  if (options.kind === 'random') return noise;
  const out = new Uint16Array(bytes / 2);
  const uniform = new Uint32Array(bytes + 8);
  randomFillSync(uniform);
  for (let i = 0; i < out.length; i++) {
    const radius = Math.sqrt(-2 * Math.log((uniform[2 * i] + 1) / 2 ** 32));
    out[i] = half(0.02 * radius * Math.cos((2 * Math.PI * uniform[2 * i + 1]) / 2 ** 32));
  }
  return Buffer.from(out.buffer);
}

/** A small number as a half float's bits, rounded down. */
function half(value) {
  const float = new DataView(new ArrayBuffer(4));
  float.setFloat32(0, value);
  const bits = float.getUint32(0);
  const exponent = ((bits >>> 23) & 0xff) - 112;
  return ((bits >>> 16) & 0x8000) | (exponent <= 0 ? 0 : (exponent << 10) | ((bits >>> 13) & 0x3ff));
}

function manifestOf(v1) {
  const { name: model, repo, revision, weightsSha256 } = key.model;
  const artifact = { graph: GRAPH.name, length: 64, batch: 1, precision: 'float16', max_options: 32 };
  return {
    format: 'laya-apple-artifact',
    format_version: 1,
    status: 'validated',
    source: { model, repo, revision, weights_sha256: weightsSha256 },
    artifact: { ...artifact, inputs: GRAPH.inputs, outputs: GRAPH.outputs },
    placement: { compute_units: 'CPU_AND_NE', ops: { ane: 3, gpu: 0, cpu: 0 }, transitions: 0 },
    platform: { soc: 'Apple M4 Max', macos: '27.0', macos_build: '26A428', coremltools: '9.0' },
    parity: { passed: true, tolerance: 0.02, rows: 41, prob_max_abs: 0.0093 },
    integrity: { artifact_sha256: v1, tree_hash: TREE_V1 },
  };
}

async function measure() {
  const runs = Number(options.runs);
  const peerPython = options['peer-python'] ?? (await python('peer'));
  const peer = (cache, ...args) =>
    timed(peerPython, [join(root, 'test', 'peer', 'laya_apple_cli.py'), 'artifacts', ...args], {
      env: { ...process.env, LAYA_APPLE_CACHE: cache, HF_HUB_OFFLINE: '1' },
    });
  const own = (cache, ...args) => timed(process.execPath, args, { env: { ...process.env, LAYA_APPLE_CACHE: cache } });
  const empty = join(work, 'empty');
  const [ourFile, peerFile] = [join(work, 'ours.tar.gz'), join(work, 'peer', 'laya-L64.tar.gz')];
  const shell = (command) => timed('sh', ['-c', command], { cwd: artifactFolder(store, key) });
  const fresh = async (step) => {
    await rm(empty, { recursive: true, force: true });
    return step();
  };
  await mkdir(join(work, 'peer'), { recursive: true });

  const rows = [];
  const add = async (name, step, reference, size) => {
    const results = await repeat(runs, step);
    const wall = median(results.map((one) => one.seconds));
    const bytes = size && existsSync(size) ? (await stat(size)).size : undefined;
    rows.push({ name, wall, reference, bytes, stdout: results.at(-1).stdout });
    return wall;
  };
  const members = 'manifest.json model.mlmodelc';
  await add(
    'laya-apple export',
    () => peer(store, 'export', 'laya', '--length', '64', '--out', join(work, 'peer')),
    undefined,
    peerFile,
  );
  await add(
    'ours export',
    () => own(store, cli, 'export', 'laya', '--length', '64', '--out', ourFile),
    'laya-apple export',
    ourFile,
  );
  await add('tar | gzip -9', () => shell(`tar cf - ${members} | gzip -9 > ${work}/gzip9`), undefined, `${work}/gzip9`);
  await add('tar | pigz -9', () => shell(`tar cf - ${members} | pigz -9 > ${work}/pigz9`), undefined, `${work}/pigz9`);
  await add('laya-apple import', () => fresh(() => peer(empty, 'import', peerFile)));
  await add('laya-apple import --force', () => peer(empty, 'import', peerFile, '--force'));
  await add('ours import of ours', () => fresh(() => own(empty, script, '--import', ourFile)), 'laya-apple import');
  await add('ours import of theirs', () => fresh(() => own(empty, script, '--import', peerFile)), 'laya-apple import');
  await add(
    'ours import --force',
    () => own(empty, script, '--import', ourFile, '--force'),
    'laya-apple import --force',
  );
  await add('ours inspect', () => own(empty, cli, 'inspect', ourFile));
  await add('tar xzf', () => fresh(() => shell(`mkdir ${empty} && tar xzf ${ourFile} -C ${empty}`)));
  await add('pigz -dc | tar x', () =>
    fresh(() => shell(`mkdir ${empty} && pigz -dc ${ourFile} | tar xf - -C ${empty}`)),
  );
  await add('openssl sha256 of the archive', () => shell(`openssl dgst -sha256 ${ourFile}`));

  const wallOf = (name) => rows.find((row) => row.name === name)?.wall;
  const gzip9 = rows.find((row) => row.name === 'tar | gzip -9').bytes;
  print(
    ['STEP', 'MEDIAN', 'TO LAYA-APPLE', 'SIZE', 'TO GZIP -9'],
    rows.map(({ name, wall, reference, bytes }) => [
      name,
      seconds(wall),
      reference ? ratio(wall, wallOf(reference)) : '-',
      bytes ? megabytes(bytes) : '-',
      bytes ? (bytes / gzip9).toFixed(4) : '-',
    ]),
  );
  console.log(
    `peak memory of an import: ${megabytes(Number(rows.find((row) => row.name === 'ours import of ours').stdout))}`,
  );
}

if (options.import) {
  await importOnly(options.import, options.force);
} else {
  console.log(`${options.megabytes} MB, ${options.kind}, ${options.runs} runs each; ${load()}`);
  try {
    await makeArtifact();
    await measure();
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
