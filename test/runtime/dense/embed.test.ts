import { beforeAll, describe, expect, it } from '@jest/globals';
import { embedTexts } from '../../../runtime/embed.js';
import { Laya } from '../../../runtime/laya.js';
import type { OpenModel, OpenOptions } from '../../../runtime/open.js';
import { DeviceQueue } from '../../../runtime/queue.js';
import { openTokenizer } from '../../../runtime/tokenizer.js';
import { registerLayaTiny, registerLayaTinyDense } from '../../registered.js';
import { codeOf, keptFolder, workspace } from '../../workspace.js';
import { TOKENIZER_DIR } from '../laya-tiny.js';
import { referenceEncoder } from './encoder-reference.js';

const store = keptFolder();
const folder = workspace();
const open = (options: OpenOptions = {}): Promise<Laya> =>
  Laya.open('laya-tiny', { root: store(), threads: 1, ...options });

beforeAll(async () => {
  await registerLayaTinyDense(store());
}, 240_000);

const TEXTS = [
  'I was charged twice for my order.',
  'The parcel has not arrived.',
  'x',
  '',
  'Where is my invoice? '.repeat(8),
];

describe('texts embedded by the model itself', () => {
  it('are the mean of the encoder’s states, as an independent calculation has them', async () => {
    const [laya, encoder, tokenizer] = [
      await open(),
      await referenceEncoder('models/laya-tiny'),
      await openTokenizer(TOKENIZER_DIR),
    ];
    const vectors = await laya.embed(TEXTS);
    expect(vectors).toHaveLength(TEXTS.length);
    for (const [i, text] of TEXTS.entries()) {
      const ids = [tokenizer.cls.id, ...(await tokenizer.encode(text, 'text')), tokenizer.sep.id];
      const states = encoder(ids);
      for (const [n, value] of vectors[i]!.entries()) {
        const mean = states.reduce((sum, state) => sum + state[n]!, 0) / ids.length;
        expect(Math.abs(value - mean)).toBeLessThan(1e-4);
      }
    }
    await laya.close();
  }, 60_000);

  it('do not depend on what they are embedded with, and keep the start of what is too long', async () => {
    const laya = await open();
    const [alone] = await laya.embed([TEXTS[0]!]);
    const [among] = await laya.embed(TEXTS);
    for (const [n, value] of alone!.entries()) expect(Math.abs(value - among![n]!)).toBeLessThan(1e-5);
    const long = 'order '.repeat(2000);
    const [whole, cut, masked, spaced] = await laya.embed([long, `${long}and more`, 'a[MASK]b', 'a b']);
    expect(whole).toEqual(cut);
    expect(masked).toEqual(spaced);
    expect(await laya.embed([])).toEqual([]);
    await laya.close();
  });

  it('make a shortlist, by the name `model`', async () => {
    const laya = await open();
    const labels = ['billing', 'shipping', 'technical', 'account', 'other'];
    const request = {
      context: 'I was charged twice.',
      questions: { topic: { type: 'choice', instructions: 'Which team?', criteria: labels } },
    };
    const embed = (texts: readonly string[]) => laya.embed(texts);
    const [named, given] = [
      await laya.predictShortlist(request, { embed: 'model', k: 2 }),
      await laya.predictShortlist(request, { embed, k: 2 }),
    ];
    expect(named.shortlist).toEqual(given.shortlist);
    expect(named.shortlist.topic).toMatchObject({ k: 2, n: 5, passthrough: false });
    expect(named.answers).toEqual(given.answers);
    await laya.close();
  });

  it('are refused where nothing can embed, with the command that helps', async () => {
    const root = folder();
    await registerLayaTiny(root, [64]);
    const bare = await open({ root });
    await expect(bare.embed(['x'])).rejects.toMatchObject({
      code: 'ARTIFACT_MISSING',
      hint: expect.stringMatching(/any-length$/),
    });
    await bare.close();
    const older = { hasDense: true, spec: { name: 'laya-tiny' }, cpu: { loadDense: async () => ({ session: {} }) } };
    const rowless = { ...older, loads: { cpu: new DeviceQueue(1) } } as unknown as OpenModel;
    await expect(embedTexts(rowless, [])).rejects.toMatchObject({ hint: expect.stringMatching(/any-length --force$/) });
    const buckets = await open({ root, graph: 'buckets' });
    expect(await codeOf(() => buckets.embed(['x']))).toBe('DEVICE_UNAVAILABLE');
    await buckets.close();
    const laya = await open();
    expect(await codeOf(() => laya.embed(['\ud800']))).toBe('TEXT_INVALID');
    await expect(laya.embed(['x'], { signal: AbortSignal.abort(new Error('left')) })).rejects.toThrow('left');
    await laya.close();
    expect(await codeOf(() => laya.embed(['x']))).toBe('CLOSED');
  }, 120_000);
});
