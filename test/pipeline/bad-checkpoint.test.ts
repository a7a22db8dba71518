import { cp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { buildArtifacts } from '../../pipeline/line.js';
import { codeOf, treeOf, workspace } from '../workspace.js';
import { testContext, testOrder } from './context.js';

const folder = workspace();
type Change = (checkpoint: string) => Promise<unknown>;

const weightsOf = (checkpoint: string): string => join(checkpoint, 'model.safetensors');

/** Rewrites the header of the weights; its length stays, so the data stays where it was. */
const header =
  (change: (text: string) => string): Change =>
  async (checkpoint) => {
    const file = await readFile(weightsOf(checkpoint));
    const length = Number(file.readBigUInt64LE(0));
    const text = change(file.subarray(8, 8 + length).toString('utf8')).padEnd(length);
    file.write(text.slice(0, length), 8, 'utf8');
    await writeFile(weightsOf(checkpoint), file);
  };

const json =
  (path: string, change: (record: Record<string, unknown>) => void): Change =>
  async (checkpoint) => {
    const record = JSON.parse(await readFile(join(checkpoint, path), 'utf8'));
    change(record);
    await writeFile(join(checkpoint, path), JSON.stringify(record));
  };

const flip =
  (at: (size: number) => number): Change =>
  async (checkpoint) => {
    const file = await readFile(weightsOf(checkpoint));
    file[at(file.length)]! ^= 0x40;
    await writeFile(weightsOf(checkpoint), file);
  };

describe('a bad checkpoint', () => {
  const cases: [string, string, Change][] = [
    ['no weights', 'CHECKPOINT_MISSING', (at) => rm(weightsOf(at))],
    ['no tokenizer', 'CHECKPOINT_MISSING', (at) => rm(join(at, 'tokenizer'), { recursive: true })],
    ['truncated weights', 'CHECKPOINT_WEIGHTS', (at) => truncate(weightsOf(at), 2_000_000)],
    ['empty weights', 'CHECKPOINT_WEIGHTS', (at) => truncate(weightsOf(at), 0)],
    ['one flipped bit in the data', 'CHECKPOINT_WEIGHTS', flip((size) => size - 1000)],
    ['a flipped bit in the header length', 'CHECKPOINT_WEIGHTS', flip(() => 5)],
    [
      'an over-declared tensor',
      'CHECKPOINT_WEIGHTS',
      header((text) => text.replace(/(data_offsets":\[\d+,)(\d)/, '$19')),
    ],
    ['a renamed tensor', 'CHECKPOINT_TENSORS', header((text) => text.replace('final_norm', 'final_nore'))],
    ['a wrong shape', 'CHECKPOINT_TENSORS', header((text) => text.replace('[2,256]', '[256,2]'))],
    ['a wrong type', 'CHECKPOINT_TENSORS', header((text) => text.replace('"F32"', '"I32"'))],
    // B04
    [
      'an unknown architecture key',
      'CHECKPOINT_CONFIG',
      json('encoder/config.json', (c) => Object.assign(c, { rope_scaling: {} })),
    ],
    [
      'a renamed rope key',
      'CHECKPOINT_CONFIG',
      json('encoder/config.json', (c) =>
        Object.assign(c, { rope_params: c.rope_parameters, rope_parameters: undefined }),
      ),
    ],
    [
      'another activation',
      'CHECKPOINT_CONFIG',
      json('encoder/config.json', (c) => Object.assign(c, { hidden_activation: 'silu' })),
    ],
    // B23
    [
      'another option layout',
      'CHECKPOINT_LAYOUT',
      json('rl_agent_config.json', (c) => Object.assign(c, { option_layout: 'parallel' })),
    ],
    [
      'a short temperature vector',
      'CHECKPOINT_CONFIG',
      json('rl_agent_config.json', (c) => Object.assign(c, { temperature: [1, 1] })),
    ],
    [
      'a config that is no JSON',
      'CHECKPOINT_CONFIG',
      (at) => writeFile(join(at, 'rl_agent_config.json'), '{"encoder":'),
    ],
    [
      'another tokenizer',
      'CHECKPOINT_WEIGHTS',
      json('tokenizer/tokenizer.json', (c) => Object.assign(c, { truncation: null, x: 1 })),
    ],
  ];

  it.each(cases)('with %s is refused by %s, and nothing is registered', async (_name, code, change) => {
    const [root, checkpoint] = [folder(), join(folder(), 'checkpoint')];
    await cp('models/laya-tiny', checkpoint, { recursive: true });
    await change(checkpoint);
    expect(await codeOf(() => buildArtifacts(testOrder({ checkpoint }), testContext(root)))).toBe(code);
    expect((await treeOf(root)).filter((path) => /manifest|rejected|staging\/.|laya-tiny\//.test(path))).toEqual([]);
  });
});
