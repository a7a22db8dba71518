// What every benchmark uses: the built project, tools, timing of child processes, medians, load, the closing table.
import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { consoleEmitter } from '../dist/pipeline/console.js';
import { table } from '../dist/pipeline/text.js';
import { ensurePython } from '../dist/pipeline/tools/python.js';
import { toolsRoot } from '../dist/registry/paths.js';

export const root = fileURLToPath(new URL('..', import.meta.url));
export const context = {
  env: process.env,
  root: '',
  tools: toolsRoot(process.env),
  offline: false,
  now: () => new Date(),
  signal: new AbortController().signal,
  emit: consoleEmitter(process.stderr, () => performance.now()),
};

export const python = async (group) => (await ensurePython(group, context)).python;

/** Runs a program; gives its wall seconds and stdout. A failure ends the benchmark. */
export async function timed(file, args, options = {}) {
  const started = performance.now();
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'], cwd: root, ...options });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${code}`);
  return { seconds: (performance.now() - started) / 1000, stdout };
}

export const median = (values) => [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)];

/** Runs the step so many times, one after the other. */
export async function repeat(times, step) {
  const results = [];
  for (let i = 0; i < times; i++) results.push(await step(i));
  return results;
}

export const load = () => `load ${loadavg()[0].toFixed(2)} (1 min), ${cpus().length} cores, node ${process.version}`;

/** A seeded full-size checkpoint, made once and kept in the tools folder. */
export async function bigCheckpoint(dtype) {
  const folder = join(context.tools, 'bench', `large-${dtype}-seed1`);
  const tokenizer = join(root, 'models', 'laya-tiny', 'tokenizer');
  await mkdir(join(folder, '..'), { recursive: true });
  const script = join(root, 'bench', 'make_checkpoint.py');
  const make = ['-I', script, folder, '--size', 'large', '--dtype', dtype, '--tokenizer', tokenizer];
  const { existsSync } = await import('node:fs');
  if (!existsSync(folder)) await timed(await python('convert'), make);
  return folder;
}

export const seconds = (value) => `${value.toFixed(2)} s`;
export const ratio = (ours, theirs) => `${(ours / theirs).toFixed(3)}`;
export const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`;
export const print = (head, rows) => console.log(`${table(head, rows)}\n${load()}`);
