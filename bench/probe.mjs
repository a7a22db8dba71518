// node bench/probe.mjs: what the probe protocol costs. Requests of the full size (d=1024, L=128) through the client to
// laya-probe as `npm run test:swift` built it, whose stand-in for Core ML computes next to nothing: what is left is
// rounding to FP16, pipes and frames. Then 10,000 requests, and the memory of both processes along them. No Mac, no ANE.
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openProbe } from '../dist/runtime/probe/client.js';
import { median, megabytes, print, root } from './lib.mjs';

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
const memory = async (child) => {
  globalThis.gc?.();
  return [await resident(process.pid), await resident(child)];
};

const executable = execFileSync(process.execPath, [join(root, 'scripts', 'test-swift.mjs'), '--probe-path'], {
  encoding: 'utf8',
}).trim();
const folder = await mkdtemp(join(tmpdir(), 'laya-bench-probe-'));
const path = await writeModel(join(folder, 'model.mlmodelc'));
const probe = await openProbe({ executable, env: {}, models: [path], accept: ['stub'] });
const child = (await readFile(`/proc/self/task/${process.pid}/children`, 'utf8')).trim().split(' ').at(-1);
const model = probe.models[0];
const inputs = Object.fromEntries(
  Object.entries(SHAPES).map(([name, shape]) => [
    name,
    Float32Array.from({ length: count(shape) }, (_, i) => Math.sin(i)),
  ]),
);
const [walls, overheads] = [[], []];
const sizes = [];
for (let i = 1; i <= REQUESTS; i++) {
  const started = performance.now();
  const { predicted } = await model.predict(inputs);
  const wall = performance.now() - started;
  walls.push(wall);
  overheads.push(wall - predicted / 1000);
  if (i === REQUESTS / 10 || i === REQUESTS) sizes.push(await memory(child));
}
await probe.close();
await rm(folder, { recursive: true });

const at = (values, share) => [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * share)];
const ms = (value) => `${value.toFixed(3)} ms`;
print(
  ['REQUEST, d=1024 L=128', 'MEDIAN', '95 %'],
  [
    ['wall time', ms(median(walls)), ms(at(walls, 0.95))],
    ['without the stand-in computing', ms(median(overheads)), ms(at(overheads, 0.95))],
  ],
);
print(
  ['RESIDENT', `AFTER ${REQUESTS / 10}`, `AFTER ${REQUESTS}`],
  [
    ['client', megabytes(sizes[0][0]), megabytes(sizes[1][0])],
    ['laya-probe', megabytes(sizes[0][1]), megabytes(sizes[1][1])],
  ],
);
