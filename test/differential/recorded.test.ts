import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ensurePython } from '../../pipeline/tools/python.js';
import { Laya } from '../../runtime/laya.js';
import { openModel } from '../../runtime/open.js';
import { openTokenizer, type PromptTokenizer } from '../../runtime/tokenizer.js';
import { testContext } from '../pipeline/context.js';
import { registerLayaTiny, registerLayaTinyDense } from '../registered.js';
import { TOKENIZER_DIR } from '../runtime/laya-tiny.js';
import { checkAnswers, checkLayaApple, checkLogits, checkPrompts } from './checks.js';
import { readRecorded } from './compare.js';

const cases = readRecorded(fileURLToPath(new URL('recorded.jsonl', import.meta.url)));
const root = join(tmpdir(), `laya-test-${randomBytes(6).toString('hex')}`);
let tokenizer: PromptTokenizer;

beforeAll(async () => {
  await registerLayaTiny(root);
  await registerLayaTinyDense(root);
  tokenizer = await openTokenizer(TOKENIZER_DIR);
}, 300_000);
afterAll(() => rmSync(root, { recursive: true, force: true }));

const ascii = (text: string): string =>
  text.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

describe('random requests that both reference packages were recorded with', () => {
  it('are there, valid and invalid ones', () => {
    expect(cases).toHaveLength(400);
    expect(new Set(cases.map(({ kind }) => kind)).size).toBeGreaterThan(15);
  });

  it('are taken or refused, tokenized and formatted as upstream does', async () => {
    const lastDigits = await checkPrompts(cases, tokenizer);
    expect(lastDigits).toBeLessThan(cases.length / 200);
  });

  it('have laya-apple’s token ids', async () => {
    expect(await checkLayaApple(cases, tokenizer)).toBeGreaterThan(200);
  });

  it('get from laya-apple’s own code what was recorded', async () => {
    const { python } = await ensurePython('peer-store', testContext(root));
    const [requests, out] = [join(root, 'requests.jsonl'), join(root, 'apple.jsonl')];
    writeFileSync(requests, cases.map(({ id, request }) => `${ascii(JSON.stringify({ id, request }))}\n`).join(''));
    const script = ['-I', '-X', 'utf8', 'test/differential/laya_apple_prompt.py', '-', 'models/laya-tiny'];
    await promisify(execFile)(python, [...script, requests, out]);
    const made = readFileSync(out, 'utf8').trim().split('\n');
    const recorded = cases.map(({ id, layaApple: one }) => ({
      id,
      ...('rows' in one ? { rows: one.rows } : { error: one.error }),
    }));
    expect(made.map((line) => JSON.parse(line))).toEqual(recorded);
  }, 300_000);

  it('give upstream’s logits from the FP16 artifacts', async () => {
    const model = await openModel('laya-tiny', { root, graph: 'buckets', threads: 1 });
    const { rows, rounded, exact } = await checkLogits(cases, model);
    await model.close();
    expect(rows).toBeGreaterThan(400);
    expect(rounded).toBeLessThan(exact);
  }, 600_000);

  it('give upstream’s answers within the gate: 0.02 from the FP16 artifacts, 1e-4 from the any-length graph', async () => {
    for (const [graph, tolerance] of [
      ['buckets', 0.02],
      ['any-length', 1e-4],
    ] as const) {
      await using laya = await Laya.open('laya-tiny', { root, graph, threads: 1 });
      const answered = await checkAnswers(cases, laya, tolerance);
      expect(answered).toBeGreaterThan(cases.length / 2);
    }
  }, 600_000);
});
