import { unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Checkpoint, readCheckpoint } from '../../runtime/checkpoint.js';
import { toHalfBits, widenHalf } from '../../runtime/float16.js';
import { type HostFeatures, HostWeights, type PromptRow } from '../../runtime/host.js';
import { TensorFile } from '../../runtime/safetensors.js';
import { copyTiny, TINY } from './checkpoint-fixture.js';
import { type NewTensor, writeSafetensors } from './safetensors-writer.js';

const D = 128;
const WINDOW = 32;
const PAD = 3;

let checkpoint: Checkpoint;
let host: HostWeights;
let tensors: NewTensor[];

beforeAll(async () => {
  checkpoint = await readCheckpoint(TINY);
  host = await HostWeights.open(checkpoint);
  const file = await TensorFile.open(join(TINY, 'model.safetensors'));
  tensors = [];
  for (const [name, { shape }] of file.table) {
    tensors.push({ name, dtype: 'F32', shape, values: await file.read(name, shape) });
  }
  await file.close();
});
afterAll(() => host.close());

const half = (value: number) => widenHalf(Uint16Array.of(toHalfBits(value)))[0]!;
const values = (name: string) => tensors.find((one) => one.name === name)!.values;
const row = (tokens: number, markers: number[] = [], qtype = 0): PromptRow => ({
  ids: Array.from({ length: tokens }, (_, i) => (i === 0 ? 1 : (i * 37) % 3072)),
  markers,
  qtype,
});

/** The definition, one value at a time. */
function expectedFeatures({ ids, markers, qtype }: PromptRow, length: number): HostFeatures {
  const table = values('encoder.embeddings.tok_embeddings.weight');
  const grid = (height: number, width: number, at: (y: number, x: number) => number) =>
    Float32Array.from({ length: height * width }, (_, i) => at(Math.floor(i / width), i % width));
  const valid = (position: number) => position < ids.length;
  const near = (key: number, query: number) => Math.abs(key - query) <= WINDOW || !valid(query);
  return {
    embeddings: grid(D, length, (c, t) => half(table[(valid(t) ? ids[t]! : PAD) * D + c]!)),
    full_mask: grid(length, length, (key) => (valid(key) ? 0 : -1e4)),
    local_mask: grid(length, length, (key, query) => (valid(key) && near(key, query) ? 0 : -1e4)),
    type_vectors: grid(1, D, (_, c) => half(values('type_emb.weight')[qtype * D + c]!)),
    marker_map: grid(length, 32, (t, k) => (markers[k] === t ? 1 : 0)),
  };
}

describe('features', () => {
  test.each([
    ['a short row', 9, 64],
    ['a row that ends inside the window of the padding', 40, 96],
    ['a row that fills the artifact', 64, 64],
    ['a row of one token', 1, 64],
  ])('of %s are what the graph asks for', (_name, tokens, length) => {
    const one = row(tokens, tokens > 4 ? [2, 4] : [0], tokens % 3);
    const features = host.features(one, length, PAD);
    const expected = expectedFeatures(one, length);
    expect(Object.keys(features).sort()).toEqual(Object.keys(expected).sort());
    for (const name of Object.keys(expected) as (keyof HostFeatures)[]) {
      expect(features[name]).toEqual(expected[name]);
    }
  });

  // B05: a padded query must see some key, or its softmax is not defined.
  test('leave no query without a key', () => {
    const { full_mask, local_mask } = host.features(row(2), 256, PAD);
    for (const mask of [full_mask, local_mask]) {
      for (let query = 0; query < 256; query++) {
        expect(Array.from({ length: 256 }, (_, key) => mask[key * 256 + query])).toContain(0);
      }
    }
  });

  test('hold only numbers that half precision has', () => {
    for (const array of Object.values(host.features(row(33, [1, 5]), 64, PAD))) {
      expect([...array].every((value) => Number.isFinite(value) && half(value) === value)).toBe(true);
    }
  });

  test('share masks between rows of one length, and stay right for many lengths', () => {
    const first = host.features(row(10), 64, PAD);
    expect(host.features(row(10), 64, PAD).local_mask).toBe(first.local_mask);
    for (let tokens = 1; tokens <= 64; tokens++) host.features(row(tokens), 64, PAD);
    expect(host.features(row(10), 64, PAD).local_mask).toEqual(first.local_mask);
  });

  test('take FP16 weights', async () => {
    const root = await copyTiny();
    await unlink(join(root, 'model.safetensors'));
    await writeSafetensors(
      join(root, 'model.safetensors'),
      tensors.map((one) => ({ ...one, dtype: 'F16' })),
    );
    const other = await HostWeights.open(await readCheckpoint(root));
    expect(other.features(row(20, [3]), 64, PAD)).toEqual(host.features(row(20, [3]), 64, PAD));
    await other.close();
  });

  test('do not truncate a row that is too long', () => {
    expect(() => host.features(row(65), 64, PAD)).toThrow(
      expect.objectContaining({ name: 'UnsupportedShapeError', code: 'ROW_TOO_LONG', found: 65 }),
    );
    expect(() => host.features(row(0), 64, PAD)).toThrow(expect.objectContaining({ code: 'ROW_TOO_LONG' }));
  });

  test('have room for 32 options, not 33', () => {
    const markers = Array.from({ length: 33 }, (_, i) => i + 1);
    expect(host.features(row(64, markers.slice(0, 32)), 64, PAD).marker_map.reduce((sum, one) => sum + one)).toBe(32);
    expect(() => host.features(row(64, markers), 64, PAD)).toThrow(
      expect.objectContaining({ name: 'UnsupportedShapeError', code: 'TOO_MANY_OPTIONS_FOR_GRAPH', found: 33 }),
    );
  });

  test('refuse markers outside the row and unknown question types', () => {
    for (const bad of [row(9, [9]), row(9, [-1]), row(9, [1.5]), row(9, [1], 3), row(9, [1], -1)]) {
      expect(() => host.features(bad, 64, PAD)).toThrow(expect.objectContaining({ code: 'QUESTION_INVALID' }));
    }
  });

  test('refuse tokens that the embedding table does not have', () => {
    for (const id of [3072, -1, 0.5, Number.NaN]) {
      expect(() => host.features({ ids: [1, id], markers: [], qtype: 0 }, 64, PAD)).toThrow(
        expect.objectContaining({ code: 'CHECKPOINT_TOKENIZER' }),
      );
    }
  });
});

describe('actionLogits', () => {
  test('equal NumPy with an exact GELU', () => {
    const cls = Float32Array.from({ length: D }, (_, i) => Math.sin(i * 0.7) * 3);
    const logits = host.actionLogits(cls, [0.75, 0.5, 0.4, 5 / 255]);
    expect(logits).toHaveLength(2);
    expect(logits[0]).toBeCloseTo(2.5492608711806968, 5);
    expect(logits[1]).toBeCloseTo(-3.700666256512686, 5);
  });

  test('are bit-identical when asked again', () => {
    const cls = Float32Array.from({ length: D }, (_, i) => 1 / (i + 1));
    expect(host.actionLogits(cls, [1, 1, 0, 2 / 255])).toEqual(host.actionLogits(cls, [1, 1, 0, 2 / 255]));
  });
});

describe('weights that half precision cannot hold', () => {
  async function withValue(name: string, at: number, value: number): Promise<Checkpoint> {
    const root = await copyTiny();
    const path = join(root, 'model.safetensors');
    await unlink(path);
    const changed = tensors.map((one) =>
      one.name === name ? { ...one, values: one.values.slice().fill(value, at, at + 1) } : one,
    );
    await writeSafetensors(path, changed);
    return readCheckpoint(root);
  }

  // B05: overflow is an error that names the tensor, not an all-NaN answer.
  test.each([
    ['type_emb.weight', 70_000],
    ['act_head.0.weight', Number.NaN],
    ['act_head.2.bias', Number.POSITIVE_INFINITY],
  ])('in %s are refused when the weights are opened', async (name, value) => {
    const damaged = await withValue(name, 1, value);
    await expect(HostWeights.open(damaged)).rejects.toMatchObject({
      code: 'CHECKPOINT_WEIGHTS',
      where: expect.stringContaining(name),
    });
  });

  test('in an embedding are refused when its token is used', async () => {
    const other = await HostWeights.open(await withValue('encoder.embeddings.tok_embeddings.weight', 7 * D, -1e6));
    expect(() => other.features({ ids: [1, 7], markers: [], qtype: 0 }, 64, PAD)).toThrow(
      expect.objectContaining({ code: 'CHECKPOINT_WEIGHTS', where: expect.stringContaining('row 7') }),
    );
    expect(other.features({ ids: [1, 8], markers: [], qtype: 0 }, 64, PAD).embeddings).toHaveLength(D * 64);
    await other.close();
  });

  test('of another checkpoint than the one that was read are refused', async () => {
    const root = await copyTiny();
    const read = await readCheckpoint(root);
    await unlink(join(root, 'model.safetensors'));
    await writeFile(join(root, 'model.safetensors'), 'x');
    await expect(HostWeights.open(read)).rejects.toMatchObject({ code: 'CHECKPOINT_WEIGHTS' });
    await unlink(join(root, 'model.safetensors'));
    await expect(HostWeights.open(read)).rejects.toMatchObject({ code: 'CHECKPOINT_MISSING' });
  });
});
