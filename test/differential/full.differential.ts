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
import { registerLayaTiny } from '../registered.js';
import { TOKENIZER_DIR } from '../runtime/laya-tiny.js';
import { checkAnswers, checkLayaApple, checkLogits, checkPrompts } from './checks.js';
import { type Case, readRun } from './compare.js';

const SEED = process.env.LAYA_DIFFERENTIAL_SEED || '1';
const COUNT = process.env.LAYA_DIFFERENTIAL_COUNT || '2400';
const HOUR = 3_600_000;

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
  tokenizer = await openTokenizer(TOKENIZER_DIR);
}, HOUR);
afterAll(() => rmSync(work, { recursive: true, force: true }));

describe(`${COUNT} random requests of seed ${SEED}`, () => {
  it('are at least 2,000', () => {
    expect(cases.length).toBeGreaterThanOrEqual(2000);
  });

  it(
    'are taken or refused, tokenized and formatted as upstream does',
    async () => {
      await checkPrompts(cases, tokenizer);
    },
    HOUR,
  );

  it(
    'have laya-apple’s token ids',
    async () => {
      report(`requests that laya-apple takes too: ${await checkLayaApple(cases, tokenizer)}`);
    },
    HOUR,
  );

  it(
    'give upstream’s logits within 0.02 and its answers within the gate',
    async () => {
      const model = await openModel('laya-tiny', { root, device: 'cpu', threads: 1 });
      report(`largest difference of a logit: ${await checkLogits(cases, model, 2e-2)}`);
      await model.close();
      await using laya = await Laya.open('laya-tiny', { root, device: 'cpu', threads: 1 });
      report(`answered requests: ${await checkAnswers(cases, laya, 0.02)}`);
    },
    HOUR,
  );
});
