import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Laya } from '../../runtime/laya.js';
import { openModel } from '../../runtime/open.js';
import { openTokenizer, type PromptTokenizer } from '../../runtime/tokenizer.js';
import { registerLayaTiny } from '../registered.js';
import { TOKENIZER_DIR } from '../runtime/laya-tiny.js';
import { checkAnswers, checkLayaApple, checkLogits, checkPrompts } from './checks.js';
import { readRecorded } from './compare.js';

const cases = readRecorded(fileURLToPath(new URL('recorded.jsonl', import.meta.url)));
const root = join(tmpdir(), `laya-test-${randomBytes(6).toString('hex')}`);
let tokenizer: PromptTokenizer;

beforeAll(async () => {
  await registerLayaTiny(root);
  tokenizer = await openTokenizer(TOKENIZER_DIR);
}, 300_000);
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('random requests that both reference packages were recorded with', () => {
  it('are there, valid and invalid ones', () => {
    expect(cases).toHaveLength(400);
    expect(new Set(cases.map(({ kind }) => kind)).size).toBeGreaterThan(15);
  });

  it('are taken or refused, tokenized and formatted as upstream does', async () => {
    await checkPrompts(cases, tokenizer);
  });

  it('have laya-apple’s token ids', async () => {
    expect(await checkLayaApple(cases, tokenizer)).toBeGreaterThan(200);
  });

  it('give upstream’s logits within 0.02 and its answers within the gate', async () => {
    const model = await openModel('laya-tiny', { root, device: 'cpu', threads: 1 });
    await checkLogits(cases, model, 2e-2);
    await model.close();
    await using laya = await Laya.open('laya-tiny', { root, device: 'cpu', threads: 1 });
    expect(await checkAnswers(cases, laya, 0.02)).toBeGreaterThan(250);
  }, 600_000);
});
