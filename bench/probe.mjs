// npm run test:swift -- --bench: what the probe protocol costs. Requests of the full size (d=1024, L=128) through the client to
// laya-probe as `npm run test:swift` built it, whose stand-in for Core ML computes next to nothing and whose time is taken
// off: what is left is pipes and frames, and rounding to FP16 where float32 goes in. Then 10,000 requests, and the memory of both processes along them. No Mac, no ANE.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openProbe } from '../dist/runtime/probe/client.js';
import { megabytes, print } from './lib.mjs';

const [WIDTH, LENGTH, REQUESTS] = [1024, 128, 10_000];
const SHAPES = {
  embeddings: [1, WIDTH, 1, LENGTH],
  full_mask: [1, LENGTH, 1, LENGTH],
  local_mask: [1, LENGTH, 1, LENGTH],
  type_vectors: [1, WIDTH, 1, 1],
  marker_map: [1, LENGTH, 1, 32],
};
const count = (shape) => shape.reduce((product, dimension) => product * dimension, 1);
const schema = (shapes) =>
  Object.entries(shapes).map(([name, shape]) => ({ name, shape: JSON.stringify(shape), dataType: 'Float16' }));

async function writeModel(folder) {
  await mkdir(folder);
  const metadata = [
    { inputSchema: schema(SHAPES), outputSchema: schema({ logits: [1, 1, 1, 32], cls: [1, WIDTH, 1, 1] }) },
  ];
  await writeFile(join(folder, 'metadata.json'), JSON.stringify(metadata));
  await writeFile(join(folder, 'coremldata.bin'), 'stand-in');
  return folder;
}

const resident = async (pid) =>
  Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

/** Bytes resident in the client, of them in use on its heap and in buffers, and resident in the probe. */
async function memory(child) {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return [await resident(process.pid), heapUsed + external, await resident(child)];
}

const executable = process.env.LAYA_PROBE_UNDER_TEST;
const folder = await mkdtemp(join(tmpdir(), 'laya-bench-probe-'));
const path = await writeModel(join(folder, 'model.mlmodelc'));
const probe = await openProbe({ executable, env: {}, models: [path], accept: ['stub'] });
const child = (await readFile(`/proc/self/task/${process.pid}/children`, 'utf8')).trim().split(' ').at(-1);
const model = probe.models[0];
const floats = Object.fromEntries(
  Object.entries(SHAPES).map(([name, shape]) => [
    name,
    Float32Array.from({ length: count(shape) }, (_, i) => Math.sin(i)),
  ]),
);
const bits = Object.fromEntries(Object.entries(SHAPES).map(([name, shape]) => [name, new Uint16Array(count(shape))]));

/** Wall milliseconds of requests, one after the other, without the time that the stand-in computed. */
async function overheads(inputs, requests) {
  const times = [];
  for (let i = 0; i < requests; i++) {
    const started = performance.now();
    const { predicted } = await model.predict(inputs);
    times.push(performance.now() - started - predicted / 1000);
  }
  return times.sort((a, b) => a - b);
}

const first = await overheads(floats, REQUESTS / 10);
const before = await memory(child);
const many = await overheads(floats, REQUESTS);
const after = await memory(child);
const raw = await overheads(bits, REQUESTS / 10);
await probe.close();
await rm(folder, { recursive: true });

const at = (values, share) => `${values[Math.floor((values.length - 1) * share)].toFixed(3)} ms`;
const row = (name, values) => [name, ...[0.05, 0.5, 0.95].map((share) => at(values, share))];
print(
  ['OVERHEAD OF A REQUEST', '5 %', 'MEDIAN', '95 %'],
  [row('FP16 in', raw), row('float32 in', many), row('float32 in, first thousand', first)],
);
print(
  ['MEMORY', 'BEFORE', `AFTER ${REQUESTS} MORE`],
  [
    ...['client, resident', 'client, in use', 'laya-probe, resident'].map((name, i) => {
      return [name, megabytes(before[i]), megabytes(after[i])];
    }),
  ],
);
