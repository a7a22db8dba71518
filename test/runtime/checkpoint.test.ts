import { mkdir, readFile, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { CHECKPOINT_FILES, REQUIRED_FILES } from '../../registry/hub/checkpoint-files.js';
import { contentRevision, hashFiles, readCheckpoint } from '../../runtime/checkpoint.js';
import { TensorFile } from '../../runtime/safetensors.js';
import { copyTiny, editJson, newFolder, TINY } from './checkpoint-fixture.js';
import { type NewTensor, writeSafetensors } from './safetensors-writer.js';

const WEIGHTS = 'model.safetensors';

/** The tensors of laya-tiny, to write again with changes. */
async function tinyTensors(): Promise<NewTensor[]> {
  const file = await TensorFile.open(join(TINY, WEIGHTS));
  const tensors: NewTensor[] = [];
  for (const [name, { shape }] of file.table) {
    tensors.push({ name, dtype: 'F32', shape, values: await file.read(name, shape) });
  }
  await file.close();
  return tensors;
}

async function withWeights(change: (tensors: NewTensor[]) => NewTensor[]): Promise<string> {
  const root = await copyTiny();
  await unlink(join(root, WEIGHTS));
  await writeSafetensors(join(root, WEIGHTS), change(await tinyTensors()));
  return root;
}

describe('readCheckpoint', () => {
  test('reads laya-tiny', async () => {
    const checkpoint = await readCheckpoint(TINY);
    expect(checkpoint.encoder).toEqual({
      hidden: 128,
      layers: 4,
      heads: 2,
      intermediate: 192,
      vocab: 3072,
      layerKinds: ['full_attention', 'sliding_attention', 'sliding_attention', 'full_attention'],
      window: 32,
      ropeTheta: { full: 160_000, sliding: 10_000 },
      normEps: 1e-5,
    });
    const { temperatureByOptions, ...agent } = checkpoint.agent;
    expect(agent).toEqual({ maxLen: 256, headMaxLen: 128, headLayers: 2, actCount: 2, temperature: [1, 1, 1] });
    expect(Object.keys(temperatureByOptions)).toEqual([]);
    expect(checkpoint.tensors.size).toBe(62);
    expect([...checkpoint.files.keys()]).toEqual(CHECKPOINT_FILES);
  });

  test('reads a folder of symbolic links, as a Hugging Face cache has', async () => {
    const root = await newFolder();
    for (const name of REQUIRED_FILES) {
      await mkdir(dirname(join(root, name)), { recursive: true });
      await symlink(join(TINY, name), join(root, name));
    }
    const { files } = await readCheckpoint(root);
    expect([...files.keys()]).toEqual([...REQUIRED_FILES].sort());
  });

  test.each(REQUIRED_FILES)('refuses a folder without %s', async (name) => {
    const root = await copyTiny();
    await rm(join(root, name));
    const refusal = { code: 'CHECKPOINT_MISSING', where: root, found: [`${name} is missing`] };
    await expect(readCheckpoint(root)).rejects.toMatchObject(refusal);
    await symlink(join(root, 'nothing'), join(root, name));
    await expect(readCheckpoint(root)).rejects.toMatchObject(refusal);
    await rm(join(root, name));
    await mkdir(join(root, name));
    await expect(readCheckpoint(root)).rejects.toMatchObject({ code: 'CHECKPOINT_MISSING' });
  });

  test('names all missing files of a path that is no checkpoint', async () => {
    for (const root of [join(TINY, 'README.md'), join(TINY, 'nowhere')]) {
      const error = await readCheckpoint(root).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: 'CHECKPOINT_MISSING', found: { length: REQUIRED_FILES.length } });
    }
  });

  test('takes FP16 weights beside an FP32 tensor', async () => {
    const root = await withWeights((tensors) =>
      tensors.map((one) => ({ ...one, dtype: one.name === 'temperature' ? 'F32' : 'F16' })),
    );
    const { tensors } = await readCheckpoint(root);
    expect(tensors.get('scorer.1.weight')?.dtype).toBe('F16');
    expect(tensors.get('temperature')?.dtype).toBe('F32');
  });

  const extra: NewTensor = { name: 'encoder.extra', dtype: 'F32', shape: [1], values: new Float32Array(1) };
  const changes: [string, (tensors: NewTensor[]) => NewTensor[]][] = [
    ['a tensor missing', (tensors) => tensors.filter(({ name }) => name !== 'scorer.3.bias')],
    ['a tensor too many', (tensors) => [...tensors, extra]],
    ['a norm before the first attention', (all) => [...all, { ...extra, name: 'encoder.layers.0.attn_norm.weight' }]],
    [
      'a turned shape',
      (all) => all.map((one) => (one.name === 'act_head.2.weight' ? { ...one, shape: [256, 2] } : one)),
    ],
  ];
  test.each(changes)('refuses weights with %s', async (_name, change) => {
    const root = await withWeights(change);
    const where = join(root, WEIGHTS);
    await expect(readCheckpoint(root)).rejects.toMatchObject({ code: 'CHECKPOINT_TENSORS', where });
  });

  test('refuses weights of another element type', async () => {
    const root = await copyTiny();
    const bytes = await readFile(join(TINY, WEIGHTS));
    const at = bytes.indexOf('"dtype":"F32","shape":[256]');
    const changed = Buffer.concat([
      bytes.subarray(0, at),
      Buffer.from('"dtype":"I32","shape":[256]'),
      bytes.subarray(at + '"dtype":"F32","shape":[256]'.length),
    ]);
    await unlink(join(root, WEIGHTS));
    await writeFile(join(root, WEIGHTS), changed);
    await expect(readCheckpoint(root)).rejects.toMatchObject({ code: 'CHECKPOINT_TENSORS' });
  });

  test('refuses a configuration that asks for other tensors than there are', async () => {
    const root = await copyTiny();
    await editJson(join(root, 'rl_agent_config.json'), (config) => ({ ...config, act_costs: { a: 1, b: 2 } }));
    const error = await readCheckpoint(root).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'CHECKPOINT_TENSORS', found: expect.stringContaining('act_head.2.weight') });
  });

  test('refuses damaged weights as CHECKPOINT_WEIGHTS', async () => {
    const root = await copyTiny();
    await unlink(join(root, WEIGHTS));
    await writeFile(join(root, WEIGHTS), (await readFile(join(TINY, WEIGHTS))).subarray(0, -1));
    await expect(readCheckpoint(root)).rejects.toMatchObject({ code: 'CHECKPOINT_WEIGHTS' });
  });
});

describe('hashFiles and contentRevision', () => {
  test('give the digests and the revision that laya-tiny is pinned by', async () => {
    const digests = await hashFiles(await readCheckpoint(TINY));
    expect(digests[WEIGHTS]).toBe('bbc18de4aa541093c7f69a8514cf5e968d73bf91ae2a8374d6dfb6f0f934b779');
    expect(Object.keys(digests)).toEqual(CHECKPOINT_FILES);
    expect(contentRevision(digests)).toBe('4defbfb4419a07a6eb8923598eb5b1063ee66d71');
  });

  test('do not depend on the order of the digests, and change with every file', async () => {
    const digests = await hashFiles(await readCheckpoint(TINY));
    const turned = Object.fromEntries(Object.entries(digests).reverse());
    expect(contentRevision(turned)).toBe(contentRevision(digests));
    for (const name of Object.keys(digests)) {
      const { [name]: _dropped, ...rest } = digests;
      expect(contentRevision(rest)).not.toBe(contentRevision(digests));
    }
  });

  test('say which file went away', async () => {
    const root = await copyTiny();
    const checkpoint = await readCheckpoint(root);
    await rm(join(root, 'tokenizer/tokenizer.json'));
    const where = join(root, 'tokenizer/tokenizer.json');
    await expect(hashFiles(checkpoint)).rejects.toMatchObject({ code: 'CHECKPOINT_MISSING', where });
  });
});
