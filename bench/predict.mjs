// npm run bench:predict [-- --size large --rounds 3 --runs 10]: requests of 1 and 8 questions at 64 and 128 tokens, ours
// beside upstream's PyTorch agent and upstream's ONNX agent, in turns, on laya-tiny; one after the other on
// the full-size random checkpoint.
// The ONNX agent takes part when LAYA_BENCH_ONNX names a folder with onnxruntime, onnx and onnxscript: made with
// `pip install --target FOLDER onnx onnxruntime onnxscript`. Called with --child it opens our
// model and answers what the parent asks for.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { requestOf } from '../dist/pipeline/benchmark/measure.js';
import { emitDense } from '../dist/pipeline/dense/emit.js';
import { formatAnswers } from '../dist/runtime/answers.js';
import { temperatures } from '../dist/runtime/calibration.js';
import { readCheckpoint } from '../dist/runtime/checkpoint.js';
import { forwardBatches } from '../dist/runtime/dense/forward.js';
import { DenseSession } from '../dist/runtime/dense/session.js';
import { HostWeights } from '../dist/runtime/host.js';
import { Laya } from '../dist/runtime/index.js';
import { prepare } from '../dist/runtime/prompt.js';
import { parseQuestions } from '../dist/runtime/questions.js';
import { openTokenizer } from '../dist/runtime/tokenizer.js';
import { fromPlain } from '../dist/schemas/json.js';
import { bigCheckpoint, context, megabytes, print, python, ratio, root, timed } from './lib.mjs';

const KINDS = [
  [64, 1],
  [128, 1],
  [64, 8],
  [128, 8],
];
const { values: options } = parseArgs({
  options: {
    size: { type: 'string', default: 'tiny' },
    rounds: { type: 'string', default: '3' },
    runs: { type: 'string', default: '30' },
    child: { type: 'boolean' },
    checkpoint: { type: 'string' },
    dense: { type: 'string' },
    store: { type: 'string' },
  },
});

/** Gives a function that answers one request: the public API where the model is registered, else its parts. */
async function opened() {
  if (options.store) {
    const laya = await Laya.open('laya-tiny', { root: options.store });
    return (request) => laya.predict(request);
  }
  const checkpoint = await readCheckpoint(options.checkpoint);
  const [tokenizer, host] = [
    await openTokenizer(join(checkpoint.root, 'tokenizer')),
    await HostWeights.open(checkpoint),
  ];
  const session = await DenseSession.open(join(options.dense, 'model.onnx'));
  const model = { host, session, maxTokens: checkpoint.agent.maxLen, vocab: checkpoint.encoder.vocab };
  const calibration = temperatures(checkpoint.agent);
  return async ({ context: state, questions: asked }) => {
    const questions = parseQuestions(fromPlain(asked));
    const { rows } = await prepare(tokenizer, checkpoint.agent, state, questions);
    return formatAnswers(questions, await forwardBatches(model, rows), calibration);
  };
}

/** Answers `{context, questions, runs}` lines with the milliseconds of each run and the CPU seconds of all. */
async function child() {
  const started = performance.now();
  const answer = await opened();
  console.log(JSON.stringify({ load_s: (performance.now() - started) / 1000 }));
  let salt = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    const { context: text, questions, runs } = JSON.parse(line);
    const ask = () => answer({ context: `${++salt} ${text}`, questions });
    await ask();
    const [before, taken] = [process.cpuUsage(), []];
    for (let i = 0; i < runs; i++) {
      const from = performance.now();
      await ask();
      taken.push(performance.now() - from);
    }
    const { user, system } = process.cpuUsage(before);
    const peak = process.resourceUsage().maxRSS * 1024;
    console.log(JSON.stringify({ ms: taken, cpu_s: (user + system) / 1e6, peak_rss_bytes: peak }));
  }
  process.exit(0);
}

/** A child that starts when it is first needed: the full-size models do not fit into memory side by side. */
const talk = (name, file, args) => ({ name, start: () => started(name, file, args) });

/** The child, which answers a line for each line it gets. */
function started(name, file, args) {
  const process = spawn(file, args, { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: process.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`${name} ended`);
    return JSON.parse(value);
  };
  return {
    ready: next(),
    ask: (order) => {
      process.stdin.write(`${JSON.stringify(order)}\n`);
      return next();
    },
    end: async () => {
      process.stdin.end();
      if (process.exitCode === null) await new Promise((resolve) => process.once('close', resolve));
    },
  };
}

/** The checkpoint's any-length graph as it is emitted now. */
async function denseOf(folder) {
  const target = join(folder, 'dense');
  rmSync(target, { recursive: true, force: true });
  await mkdir(target);
  await emitDense(await readCheckpoint(folder), target);
  return target;
}

async function subjects(store) {
  const own = [join(root, 'bench', 'predict.mjs'), '--child'];
  const checkpoint = options.size === 'large' ? await bigCheckpoint('F32') : join(root, 'models', 'laya-tiny');
  if (options.size === 'large') own.push('--checkpoint', checkpoint, '--dense', await denseOf(checkpoint));
  else {
    const build = [join(root, 'bin', 'laya-artifacts.js'), 'build', 'laya-tiny', '--graph', 'all'];
    await timed(process.execPath, build, { env: { ...process.env, LAYA_APPLE_CACHE: store } });
    own.push('--store', store);
  }
  const peer = join(root, 'bench', 'predict_peer.py');
  const reference = await python('reference');
  return {
    checkpoint,
    list: [
      talk('ours', process.execPath, own),
      talk('upstream, PyTorch', reference, ['-I', '-X', 'utf8', peer, 'torch', checkpoint]),
      ...(process.env.LAYA_BENCH_ONNX
        ? [
            talk('upstream, ONNX', reference, [
              '-I',
              '-X',
              'utf8',
              peer,
              'onnx',
              checkpoint,
              process.env.LAYA_BENCH_ONNX,
              join(context.tools, 'bench', `upstream-${options.size}`),
            ]),
          ]
        : []),
    ],
  };
}

const at = (values, share) => [...values].sort((a, b) => a - b)[Math.ceil(share * values.length) - 1];

async function compare() {
  const store = mkdtempSync(join(tmpdir(), 'laya-bench-predict-'));
  await mkdir(join(context.tools, 'bench'), { recursive: true });
  const { checkpoint, list } = await subjects(store);
  const { agent, root: folder } = await readCheckpoint(checkpoint);
  const tokenizer = await openTokenizer(join(folder, 'tokenizer'));
  const requests = [];
  for (const [length, count] of KINDS) requests.push(await requestOf(tokenizer, agent, length - 3, count));
  const found = list.map(() => KINDS.map(() => ({ ms: [], cpu: 0, peak: 0 })));
  const loads = [];
  for (const turn of options.size === 'large' ? list.map((_, i) => [i]) : [[...list.keys()]]) {
    const running = new Map(turn.map((i) => [i, list[i].start()]));
    for (const [i, { ready }] of running) loads[i] = (await ready).load_s;
    for (const [kind, { context: text, questions }] of requests.entries())
      for (let round = 0; round < Number(options.rounds); round++)
        for (const [i, subject] of running) {
          const order = { context: text, questions, runs: Number(options.runs) };
          const { ms, cpu_s, peak_rss_bytes } = await subject.ask(order);
          const of = found[i][kind];
          of.ms.push(...ms);
          of.cpu += cpu_s;
          of.peak = peak_rss_bytes;
        }
    for (const subject of running.values()) await subject.end();
  }
  const rows = KINDS.flatMap(([length, count], kind) => {
    const rate = ({ ms }) => (1000 * count * ms.length) / ms.reduce((a, b) => a + b, 0);
    return list.map(({ name }, i) => {
      const of = found[i][kind];
      return [
        `${count} x ${length}`,
        name,
        at(of.ms, 0.5).toFixed(1),
        at(of.ms, 0.99).toFixed(1),
        rate(of).toFixed(1),
        ratio(rate(found[0][kind]), rate(of)),
        ((1000 * of.cpu) / of.ms.length).toFixed(1),
        megabytes(of.peak),
      ];
    });
  });
  const head = ['ROWS', `WHO (${options.size})`, 'P50 MS', 'P99 MS', 'ROWS/S', 'OURS/IT', 'CPU MS', 'PEAK RSS'];
  print(head, rows);
  console.log(`load: ${list.map(({ name }, i) => `${name} ${loads[i].toFixed(2)} s`).join(', ')}`);
  rmSync(store, { recursive: true, force: true });
}

await (options.child ? child() : compare());
