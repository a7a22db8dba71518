import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openTokenizer } from '../../runtime/tokenizer.js';
import { TOKENIZER_DIR } from './laya-tiny.js';

const SPECIAL = ['<pad>', '<bos>', '<eos>', '<mask>'];
const WORDS = [...SPECIAL, '<unk>', 'a', 'b', '\u2581a', '\u2581b'];

/** A small tokenizer with Metaspace, as the multilingual checkpoint has; truncation and padding are on. */
const MODEL = {
  version: '1.0',
  truncation: { direction: 'Right', max_length: 2, strategy: 'LongestFirst', stride: 0 },
  padding: {
    strategy: { Fixed: 9 },
    direction: 'Right',
    pad_to_multiple_of: null,
    pad_id: 0,
    pad_type_id: 0,
    pad_token: '<pad>',
  },
  added_tokens: SPECIAL.map((content, id) => ({
    id,
    content,
    single_word: false,
    lstrip: content === '<mask>',
    rstrip: false,
    normalized: false,
    special: true,
  })),
  normalizer: null,
  pre_tokenizer: { type: 'Metaspace', replacement: '\u2581', prepend_scheme: 'always', split: true },
  post_processor: null,
  decoder: null,
  model: { type: 'WordLevel', vocab: Object.fromEntries(WORDS.map((word, id) => [word, id])), unk_token: '<unk>' },
};
const CONFIG = {
  cls_token: '<bos>',
  sep_token: { content: '<eos>', lstrip: false },
  pad_token: '<pad>',
  mask_token: { content: '<mask>' },
};

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tokenizer-'));
});
afterEach(() => rm(dir, { recursive: true }));

async function write(model: unknown, config: unknown): Promise<string> {
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  if (model !== undefined) await writeFile(join(dir, 'tokenizer.json'), text(model));
  if (config !== undefined) await writeFile(join(dir, 'tokenizer_config.json'), text(config));
  return dir;
}

describe('openTokenizer', () => {
  test('finds the special tokens, written as text or as object', async () => {
    const { cls, sep, pad, mask } = await openTokenizer(await write(MODEL, CONFIG));
    expect({ cls, sep, pad, mask }).toEqual({
      cls: { text: '<bos>', id: 1 },
      sep: { text: '<eos>', id: 2 },
      pad: { text: '<pad>', id: 0 },
      mask: { text: '<mask>', id: 3 },
    });
  });

  test('gives all tokens of a text, whatever truncation and padding the file asks for', async () => {
    // S05
    const tokenizer = await openTokenizer(await write(MODEL, CONFIG));
    expect(await tokenizer.encode('a b a b <mask><eos>z', 'state')).toEqual([7, 8, 7, 8, 3, 2, 4]);
    expect(await tokenizer.encode('', 'state')).toEqual([]);
  });

  test('gives every caller an array of their own', async () => {
    const tokenizer = await openTokenizer(await write(MODEL, CONFIG));
    const first = await tokenizer.encode('a b', 'state');
    first.push(99);
    const second = await tokenizer.encode('a b', 'state');
    second[0] = 99;
    expect(await tokenizer.encode('a b', 'state')).toEqual([7, 8]);
    expect(await tokenizer.encode('a  b', 'state')).not.toEqual([7, 8]);
  });

  test('gives a text the same ids, whether it is new or not', async () => {
    const texts = [
      '',
      ' ',
      'the customer',
      ' the customer',
      'e\u0301',
      '\u00e9',
      '[MASK]',
      '\u{1f600}',
      'x'.repeat(5000),
    ];
    const [once, again] = [await openTokenizer(TOKENIZER_DIR), await openTokenizer(TOKENIZER_DIR)];
    for (const text of texts) {
      const ids = await once.encode(text, 'state');
      expect(await once.encode(text, 'state')).toEqual(ids);
      expect(await again.encode(text, 'state')).toEqual(ids);
    }
  });

  test('opens laya-tiny', async () => {
    const tokenizer = await openTokenizer(TOKENIZER_DIR);
    expect([tokenizer.cls.id, tokenizer.sep.id, tokenizer.pad.id, tokenizer.mask.id]).toEqual([1, 2, 3, 4]);
    // S04: canonically equal texts have equal ids under NFC
    expect(await tokenizer.encode('e\u0301 \u212b', 'state')).toEqual(await tokenizer.encode('\u00e9 \u00c5', 'state'));
  });

  test.each(['\ud800', 'a\udc00b', '\u{1f600}\ud83d'])('refuses text that is not Unicode: %j', async (text) => {
    const tokenizer = await openTokenizer(TOKENIZER_DIR);
    for (const where of ['state', 'again']) {
      await expect(tokenizer.encode(text, where)).rejects.toMatchObject({ code: 'TEXT_INVALID', where });
    }
  });

  test.each([
    ['no tokenizer.json', undefined, CONFIG],
    ['no tokenizer_config.json', MODEL, undefined],
  ])('reports %s as missing', async (_, model, config) => {
    await expect(openTokenizer(await write(model, config))).rejects.toMatchObject({ code: 'CHECKPOINT_MISSING' });
  });

  test.each([
    ['tokenizer.json is not JSON', '{', CONFIG],
    ['tokenizer.json is something else', {}, CONFIG],
    ['the configuration is not JSON', MODEL, '{"cls_token":'],
    ['the configuration has a byte order mark', MODEL, `\ufeff${JSON.stringify(CONFIG)}`],
    ['the configuration is a list', MODEL, []],
    ['a special token is not named', MODEL, { ...CONFIG, mask_token: undefined }],
    ['a special token is a number', MODEL, { ...CONFIG, mask_token: 3 }],
    ['a special token is empty', MODEL, { ...CONFIG, mask_token: { content: '' } }],
    ['a special token is not in the vocabulary', MODEL, { ...CONFIG, mask_token: '[MASK]' }],
    ['options would be cut at their start', MODEL, { ...CONFIG, truncation_side: 'left' }],
  ])('refuses the checkpoint when %s', async (_, model, config) => {
    await expect(openTokenizer(await write(model, config))).rejects.toMatchObject({
      name: 'CheckpointError',
      code: 'CHECKPOINT_TOKENIZER',
      where: expect.stringContaining(dir),
    });
  });

  test('refuses files that are not UTF-8', async () => {
    await write(MODEL, undefined);
    await writeFile(join(dir, 'tokenizer_config.json'), Buffer.from([0x7b, 0xff, 0x7d]));
    await expect(openTokenizer(dir)).rejects.toMatchObject({ code: 'CHECKPOINT_TOKENIZER' });
  });
});
