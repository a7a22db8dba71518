import { randomBytes } from 'node:crypto';
import { chmodSync, rmSync } from 'node:fs';
import { appendFile, cp, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { findModel } from '../../registry/models.js';
import { artifactFolder, COMPILED } from '../../registry/paths.js';
import { hashTree } from '../../registry/tree.js';
import { type Answer, Laya } from '../../runtime/index.js';
import { stringifyJson, toPlain } from '../../schemas/json.js';
import { registerLayaTiny } from '../registered.js';
import { codeOf, treeOf } from '../workspace.js';
import { CASES } from './laya-tiny.js';

const root = join(tmpdir(), `laya-test-${randomBytes(6).toString('hex')}`);
const env = { LAYA_APPLE_CACHE: root };
const folderOf = (bucket: number): string => artifactFolder(root, { model: findModel('laya-tiny'), bucket });

beforeAll(async () => {
  await registerLayaTiny(root);
}, 300_000);
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Every number of a value replaced by 0, so that two values can be compared in fields and order. */
const shapeOf = (text: string): string => text.replace(/(?<=[:[] ?)-?\d+(\.\d+)?(e[-+]?\d+)?/g, '0');
const numbersOf = (text: string): number[] =>
  [...text.matchAll(/(?<=[:[] ?)-?\d+(?:\.\d+)?(?:e[-+]?\d+)?/g)].map(([number]) => Number(number));
const decisionOf = (answer: Answer): unknown => {
  if (answer.type === 'choice') return answer.choice;
  const probabilities = answer.type === 'noul' ? [1 - answer.noul, answer.noul] : Object.values(answer.probabilities);
  return probabilities.indexOf(Math.max(...probabilities));
};

describe('Laya on the registered artifacts', () => {
  it('answers every golden request as upstream does', async () => {
    await using laya = await Laya.open('laya-tiny', { env, device: 'cpu' });
    let compared = 0;
    for (const { name, state, questions, minConfidence, answers: expected, usage } of CASES) {
      const result = await laya.predict({ context: state, questions, minConfidence });
      const printed = result.toJson();
      const [found, wanted] = [stringifyJson(printed.get('answers')!), stringifyJson(expected)];
      expect([name, shapeOf(found)]).toEqual([name, shapeOf(wanted)]);
      expect(stringifyJson(printed.get('usage')!)).toBe(stringifyJson(usage));
      const reference = numbersOf(wanted);
      for (const [i, value] of numbersOf(found).entries()) {
        expect(Math.abs(value - reference[i]!)).toBeLessThanOrEqual(0.02);
      }
      const plain = toPlain(expected) as unknown as Record<string, Answer>;
      for (const [id, answer] of Object.entries(result.answers)) {
        expect([name, id, decisionOf(answer)]).toEqual([name, id, decisionOf(plain[id]!)]);
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(300);
  }, 120_000);

  it('takes the smallest registered bucket and tells which', async () => {
    await using laya = await Laya.open('laya-tiny', { env });
    const ask = async (words: number) =>
      (await laya.predict({ context: 'invoice '.repeat(words), questions: ['Billing?'] })).runtime;
    expect(await ask(5)).toMatchObject({ buckets: [64], device: 'cpu', routing_reason: 'ane_runtime_unavailable' });
    expect((await ask(80)).buckets).toEqual([128]);
    expect(await ask(5000)).toMatchObject({ buckets: [256], truncated: true, sequence_length: 256 });
  });

  it('answers no questions without running anything', async () => {
    await using laya = await Laya.open('laya-tiny', { env });
    const { answers, usage, runtime } = await laya.predict({ context: 'x', questions: {} });
    expect({ ...answers }).toEqual({});
    expect(usage.input_tokens).toBe(0);
    expect(runtime).toMatchObject({ backend: 'none', device: 'none', routing_reason: 'no_questions' });
  });

  it('gives equal numbers again, and to concurrent requests', async () => {
    await using laya = await Laya.open('laya-tiny', { env });
    const request = { context: 'I was charged twice.', questions: ['Is it about billing?', 'Is it urgent?'] };
    const results = await Promise.all([1, 2, 3, 4].map(() => laya.predict(request)));
    const texts = results.map(({ answers }) => JSON.stringify(answers));
    expect(new Set(texts).size).toBe(1);
  });

  // S19: an explicit device that can't serve raises.
  it('refuses the Neural Engine where it can not serve', async () => {
    expect(await codeOf(() => Laya.open('laya-tiny', { env, device: 'ane' }))).toBe('DEVICE_UNAVAILABLE');
  });

  it('refuses unknown models, malformed questions and an empty store', async () => {
    expect(await codeOf(() => Laya.open('gpt', { env }))).toBe('MODEL_UNKNOWN');
    expect(await codeOf(() => Laya.open('laya-tiny', { root: `${root}-gone`, env }))).toBe('ARTIFACT_MISSING');
    await using laya = await Laya.open('laya-tiny', { env });
    expect(await codeOf(() => laya.predict({ context: 'x', questions: { a: { type: 'rank' } } as unknown }))).toBe(
      'QUESTION_INVALID',
    );
  });

  it('takes a threshold in either spelling, and refuses what is none', async () => {
    await using laya = await Laya.open('laya-tiny', { env });
    const request = { context: 'I was charged twice.', questions: ['Is it about billing?'] };
    const [answer] = Object.values((await laya.predict({ ...request, minConfidence: 1 })).answers);
    expect(answer).toMatchObject({ low_confidence: true, abstention: 'abstained', abstention_threshold: 1 });
    const other = await laya.predict({ ...request, min_confidence: { 'noul:2': 1 } });
    expect(Object.values(other.answers)).toEqual([answer]);
    for (const bad of [1.5, '0.5', Number.NaN, { 'noul:3': 1 }]) {
      expect(await codeOf(() => laya.predict({ ...request, minConfidence: bad }))).toBe('MIN_CONFIDENCE_INVALID');
      expect(await codeOf(() => laya.predict({ ...request, min_confidence: bad }))).toBe('MIN_CONFIDENCE_INVALID');
    }
  });

  // R19: opening, answering and closing change no byte of the store or the checkpoint.
  it('writes nothing into the store or the checkpoint', async () => {
    const before = [await hashTree(join(root, 'artifacts')), await hashTree('models/laya-tiny')];
    chmodSync(join(root, 'artifacts'), 0o555);
    const laya = await Laya.open('laya-tiny', { env });
    await laya.predict({ context: 'x', questions: ['Billing?'] });
    await laya.close();
    chmodSync(join(root, 'artifacts'), 0o755);
    expect([await hashTree(join(root, 'artifacts')), await hashTree('models/laya-tiny')]).toEqual(before);
  });

  it('needs the checkpoint that the artifact was proven with', async () => {
    const copy = `${root}-checkpoint`;
    await cp('models/laya-tiny', copy, { recursive: true });
    await appendFile(join(copy, 'tokenizer/tokenizer_config.json'), ' ');
    const code = await codeOf(() => Laya.open('laya-tiny', { env, checkpoint: copy }));
    rmSync(copy, { recursive: true });
    expect(code).toBe('CHECKPOINT_WEIGHTS');
  });

  // The tokenizer is read beside other work: what it throws must not be lost, nor end the process.
  it('refuses a tokenizer that can not be read', async () => {
    const copy = `${root}-tokenizer`;
    await cp('models/laya-tiny', copy, { recursive: true });
    await writeFile(join(copy, 'tokenizer/tokenizer.json'), '{');
    const code = await codeOf(() => Laya.open('laya-tiny', { env, checkpoint: copy }));
    rmSync(copy, { recursive: true });
    expect(code).toBe('CHECKPOINT_WEIGHTS');
  });

  it('does not answer from an artifact with a changed byte', async () => {
    const weights = join(folderOf(96), COMPILED, 'weights/weight.bin');
    const content = await readFile(weights);
    const { size } = await stat(weights);
    const copy = `${root}-damaged`;
    await mkdir(copy);
    await cp(join(root, 'artifacts'), join(copy, 'artifacts'), { recursive: true });
    const damaged = join(
      artifactFolder(copy, { model: findModel('laya-tiny'), bucket: 96 }),
      COMPILED,
      'weights/weight.bin',
    );
    content[size >> 1]! ^= 1;
    await writeFile(damaged, content);
    await using laya = await Laya.open('laya-tiny', { root: copy, env });
    const ask = (words: number) => laya.predict({ context: 'invoice '.repeat(words), questions: ['Billing?'] });
    expect(await codeOf(() => ask(40))).toBe('TREE_MISMATCH');
    expect(await codeOf(() => ask(5))).toBe('no error');
    rmSync(copy, { recursive: true });
  });

  it('names the build of an offered bucket that is not registered', async () => {
    const aside = `${root}-L256`;
    await rename(folderOf(256), aside);
    const laya = await Laya.open('laya-tiny', { env });
    const code = await codeOf(() => laya.predict({ context: 'invoice '.repeat(5000), questions: ['Billing?'] }));
    await laya.close();
    await rename(aside, folderOf(256));
    expect(code).toBe('ARTIFACT_MISSING');
    expect(await treeOf(folderOf(256))).not.toEqual([]);
  });
});
