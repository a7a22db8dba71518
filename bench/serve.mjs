// npm run bench:serve: 16 concurrent clients on loopback, our server beside upstream's, both with laya-tiny on the CPU.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { context, median, print, python, ratio, root, timed } from './lib.mjs';

const CLIENTS = 16;
const ROUNDS = 3;
const REQUESTS = Number(process.env.LAYA_BENCH_REQUESTS ?? 320);
const cache = process.env.LAYA_APPLE_CACHE ?? mkdtempSync(join(tmpdir(), 'laya-bench-serve-'));
const cli = join(root, 'bin', 'laya-artifacts.js');
const checkpoint = join(root, 'models', 'laya-tiny');
const choice = { type: 'choice', instructions: 'Which team?', criteria: ['billing', 'shipping', 'technical'] };
const questions = (count) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`q${i}`, choice]));

/** Each body is another text: nothing is answered from a cache of whole requests. */
const bodies = (count, salt) =>
  Array.from({ length: REQUESTS }, (_, i) => {
    const state = `I was charged twice for order ${salt}${i}, please fix this today. The parcel came late, too.`;
    return JSON.stringify({ model: 'tiny', state, questions: questions(count) });
  });

function post(url, body, agent) {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
    const call = request(`${url}/v1/systemone`, { method: 'POST', agent, headers }, (response) => {
      response.setEncoding('utf8');
      let text = '';
      response.on('data', (part) => {
        text += part;
      });
      response.on('end', () => (response.statusCode === 200 ? resolve(text) : reject(new Error(text))));
    });
    call.on('error', reject);
    call.end(body);
  });
}

/** All bodies through the clients; requests a second and the latencies in milliseconds. */
async function round(url, list) {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const latencies = [];
  let next = 0;
  const started = performance.now();
  const client = async () => {
    while (next < list.length) {
      const sent = performance.now();
      await post(url, list[next++], agent);
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  agent.destroy();
  return { rate: (list.length / (performance.now() - started)) * 1000, latencies };
}

async function until(url, child) {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
    const reply = await fetch(`${url}/health`).catch(() => undefined);
    if (reply?.ok && (await reply.json()).status === 'ok') return url;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function startOurs(port, graph) {
  const args = [
    cli,
    'serve',
    '--model',
    'laya-tiny',
    '--port',
    String(port),
    '--log-level',
    'warning',
    '--graph',
    graph,
  ];
  const env = { ...process.env, LAYA_APPLE_CACHE: cache };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  return { child, url: await until(`http://127.0.0.1:${port}`, child) };
}

/** fastapi and uvicorn, from their lock, in a folder of their own beside the reference environment. */
async function serverPackages(interpreter) {
  const lock = join(root, 'bench', 'requirements-serve.lock');
  const digest = createHash('sha256').update(readFileSync(lock)).digest('hex').slice(0, 12);
  const folder = join(context.tools, 'bench', `serve-${digest}`);
  if (existsSync(folder)) return folder;
  const pip = ['-I', '-m', 'pip', 'install', '-q', '--no-deps', '--require-hashes', '--only-binary', ':all:'];
  await timed(interpreter, [...pip, '-r', lock, '--target', folder]);
  return folder;
}

async function startUpstream(port) {
  const interpreter = await python('reference');
  const env = {
    ...process.env,
    ...{ PYTHONPATH: await serverPackages(interpreter), HF_HUB_OFFLINE: '1', LAYA_DEVICE: 'cpu' },
    ...{ LAYA_HOST: '127.0.0.1', LAYA_PORT: String(port), LAYA_LOG_LEVEL: 'warning' },
    ...{ LAYA_EXTRA_MODELS: JSON.stringify({ tiny: checkpoint }), LAYA_MODELS: 'tiny', LAYA_DEFAULT_MODEL: 'tiny' },
  };
  const child = spawn(interpreter, ['-m', 'laya.serve'], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  return { child, url: await until(`http://127.0.0.1:${port}`, child) };
}

const quantile = (values, q) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))];
const ms = (value) => `${value.toFixed(1)} ms`;

spawnSync(process.execPath, [cli, 'build', 'laya-tiny', '--graph', 'all'], {
  env: { ...process.env, LAYA_APPLE_CACHE: cache },
  stdio: 'ignore',
});
const servers = {
  ours: await startOurs(18642, 'auto'),
  'ours, any-length': await startOurs(18644, 'any-length'),
  upstream: await startUpstream(18643),
};
const rows = [];
for (const count of [1, 8]) {
  const empty = () => Object.fromEntries(Object.keys(servers).map((name) => [name, []]));
  const [rates, latencies] = [empty(), empty()];
  for (const name of Object.keys(servers)) await round(servers[name].url, bodies(count, 'w').slice(0, 2 * CLIENTS));
  for (let i = 0; i < ROUNDS; i++)
    for (const name of Object.keys(servers)) {
      const result = await round(servers[name].url, bodies(count, `${i}-`));
      rates[name].push(result.rate);
      latencies[name].push(...result.latencies);
    }
  for (const name of Object.keys(servers)) {
    const [p50, p99] = [quantile(latencies[name], 0.5), quantile(latencies[name], 0.99)];
    const times = name !== 'upstream' ? `${ratio(median(rates[name]), median(rates.upstream))} x` : '';
    rows.push([
      `${name}, ${count} question${count > 1 ? 's' : ''}`,
      `${median(rates[name]).toFixed(0)}/s`,
      ms(p50),
      ms(p99),
      times,
    ]);
  }
}
print(['SERVER', 'REQUESTS', 'P50', 'P99', 'TO UPSTREAM'], rows);
for (const { child } of Object.values(servers)) child.kill('SIGTERM');
if (!process.env.LAYA_APPLE_CACHE) rmSync(cache, { recursive: true, force: true });
