import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runProgram } from '../../pipeline/process.js';
import { ensurePython, pipEnvironment } from '../../pipeline/tools/python.js';
import { Laya } from '../../runtime/laya.js';
import { openModel } from '../../runtime/open.js';
import { openTokenizer, type PromptTokenizer } from '../../runtime/tokenizer.js';
import { testContext } from '../pipeline/context.js';
import { registerLayaTiny, registerLayaTinyDense } from '../registered.js';
import { TOKENIZER_DIR } from '../runtime/laya-tiny.js';
import { checkAnswers, checkLayaApple, checkLogits, checkPrompts } from './checks.js';
import { type Case, readRun } from './compare.js';

const SEED = process.env.LAYA_DIFFERENTIAL_SEED || '1';
const COUNT = process.env.LAYA_DIFFERENTIAL_COUNT || '2400';

const here = fileURLToPath(new URL('.', import.meta.url));
const project = fileURLToPath(new URL('../..', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'laya-differential-'));
const root = join(work, 'store');
const context = testContext(root);
let cases: Case[] = [];
let tokenizer: PromptTokenizer;

const report = (line: string): void => void process.stderr.write(`${line}\n`);

async function run(python: string, ...args: string[]): Promise<void> {
  const options = { env: pipEnvironment(context), cwd: project, signal: context.signal };
  const { exitCode, stderrTail } = await runProgram(python, ['-I', '-X', 'utf8', ...args], options);
  if (exitCode !== 0) throw new Error(`${args[0]}: ${stderrTail}`);
}

beforeAll(async () => {
  const { python } = await ensurePython('reference', context);
  const [requests, upstream, apple] = ['requests', 'upstream', 'apple'].map((name) => join(work, `${name}.jsonl`)) as [
    string,
    string,
    string,
  ];
  const checkpoint = join(project, 'models/laya-tiny');
  const made = ['--seed', SEED, '--count', COUNT, '--tokenizer', join(checkpoint, 'tokenizer'), '--out', requests];
  await run(python, join(here, 'make_requests.py'), ...made);
  await run(python, join(here, 'upstream.py'), checkpoint, requests, upstream);
  const lock = join(project, 'python-convert/peer-goldens.lock');
  await run(python, '-m', 'pip', 'download', '-q', '-d', work, '--no-deps', '--require-hashes', '-r', lock);
  const wheel = join(work, readdirSync(work).find((name) => name.endsWith('.whl'))!);
  await run(python, join(here, 'laya_apple_prompt.py'), wheel, checkpoint, requests, apple);
  cases = readRun(requests, upstream, apple);
  await registerLayaTiny(root);
  await registerLayaTinyDense(root);
  tokenizer = await openTokenizer(TOKENIZER_DIR);
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

describe(`${COUNT} random requests of seed ${SEED}`, () => {
  it('are at least 2,000', () => {
    expect(cases.length).toBeGreaterThanOrEqual(2000);
  });

  it('are taken or refused, tokenized and formatted as upstream does', async () => {
    const lastDigits = await checkPrompts(cases, tokenizer);
    report(`requests with another last digit: ${lastDigits}`);
    expect(lastDigits).toBeLessThan(cases.length / 200);
  });

  it('have laya-apple’s token ids', async () => {
    const compared = await checkLayaApple(cases, tokenizer);
    report(`requests that laya-apple takes too: ${compared}`);
    expect(compared).toBeGreaterThan(cases.length / 2);
  });

  it('give upstream’s logits from the FP16 artifacts', async () => {
    const model = await openModel('laya-tiny', { root, graph: 'buckets', threads: 1 });
    const { rows, rounded, exact } = await checkLogits(cases, model);
    await model.close();
    expect(rows).toBeGreaterThan(cases.length);
    report(`logits: ${rows} rows, largest difference ${rounded} from rounded weights, ${exact} from FP32`);
  });

  it('give upstream’s answers within the gate: 0.02 from the FP16 artifacts, 1e-4 from the any-length graph', async () => {
    for (const [graph, tolerance] of [
      ['buckets', 0.02],
      ['any-length', 1e-4],
    ] as const) {
      await using laya = await Laya.open('laya-tiny', { root, graph, threads: 1 });
      const answered = await checkAnswers(cases, laya, tolerance);
      report(`${graph}: ${answered} answered requests`);
      expect(answered).toBeGreaterThan(cases.length / 2);
    }
  });
});
