import { createHash } from 'node:crypto';
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { BlobFiles } from '../../../runtime/mil/blobs.js';
import { TRANSLATOR_VERSION } from '../../../runtime/mil/cache.js';
import { parseMil } from '../../../runtime/mil/parser.js';
import { loadMlmodelc } from '../../../runtime/mil/session.js';
import { translate } from '../../../runtime/mil/translate.js';
import { readMilText } from '../../../runtime/mil/tree.js';
import { inlineModel } from '../../../runtime/mil/weights.js';
import { codeOf, treeOf, workspace } from '../../workspace.js';
import { blob, bytesOf, maxDifference, noise, program, weightFile, withModel, writeModel } from './models.js';
import { TRACED } from './traced.js';

const folder = workspace();

const SIZE = 128;
const KEY = 'a1b2c3';
const COPY = [`${KEY}/`, `${KEY}/model.onnx`, `${KEY}/model.onnx.data`, `${KEY}/stamp.json`];

/** A product with a matrix whose elements are all `bits`, as halves. */
async function productModel(dir: string, bits: number): Promise<string> {
  const weight = { dtype: 'fp16', bytes: bytesOf(new Uint16Array(SIZE * SIZE).fill(bits)) } as const;
  const { file, offsets } = weightFile([weight]);
  const vector = `tensor<fp32, [1, ${SIZE}, 1, 1]>`;
  const matrix = `tensor<fp16, [${SIZE}, ${SIZE}, 1, 1]>`;
  const statements = [
    `${matrix} w = const()[val = ${blob(matrix, offsets[0]!)}];`,
    `${vector} y = conv(weight = w, x = x);`,
  ];
  return writeModel(dir, program(`${vector} x`, statements, 'y'), file);
}

/** Half precision for 1 and 2. */
const [ONE, TWO] = [0x3c00, 0x4000] as const;

/** Opens a model as if it were a large one and tells what the matrix of one number answers to ones. */
async function answer(dir: string, cache: { dir: string; key: string } | null): Promise<number> {
  const model = await loadMlmodelc(dir, { cache, threads: 1, fileBytes: 0 });
  try {
    return (await model.run({ x: new Float32Array(SIZE).fill(1) })).y![0]! / SIZE;
  } finally {
    await model.release();
  }
}

const temporary = () => readdirSync(tmpdir()).filter((name) => name.startsWith('laya-portable-'));
const stamp = (cache: string) => readFileSync(join(cache, KEY, 'stamp.json'), 'utf8');

describe('the cache of translated models', () => {
  test('is written once by one rename and used again', async () => {
    const cache = join(folder(), 'nested', 'cache');
    const dir = await productModel(folder(), ONE);
    expect(await answer(dir, { dir: cache, key: KEY })).toBe(1);
    expect(await treeOf(cache)).toEqual(COPY);
    const data = statSync(join(cache, KEY, 'model.onnx.data'));
    expect(data.size).toBe(SIZE * SIZE * 4);
    expect(data.mode & 0o077).toBe(0);
    const before = stamp(cache);
    expect(await answer(dir, { dir: cache, key: KEY })).toBe(1);
    expect(stamp(cache)).toBe(before);
  });

  test('is rebuilt when the artifact behind the key changed', async () => {
    const cache = folder();
    const dir = await productModel(folder(), ONE);
    await answer(dir, { dir: cache, key: KEY });
    await productModel(dir, TWO);
    expect(await answer(dir, { dir: cache, key: KEY })).toBe(2);
    expect(await treeOf(cache)).toEqual(COPY);
  });

  test.each<[string, (copy: string) => void]>([
    ['weights were changed', (copy) => writeFileSync(join(copy, 'model.onnx.data'), Buffer.alloc(64), { flag: 'r+' })],
    ['weights were cut', (copy) => truncateSync(join(copy, 'model.onnx.data'), 4096)],
    ['the model is damaged', (copy) => appendFileSync(join(copy, 'model.onnx'), 'x')],
    ['the stamp is damaged', (copy) => writeFileSync(join(copy, 'stamp.json'), '{"translator":')],
    [
      'the stamp is of another translator',
      (copy) => {
        const path = join(copy, 'stamp.json');
        writeFileSync(path, readFileSync(path, 'utf8').replace(`"translator":${TRANSLATOR_VERSION}`, '"translator":0'));
      },
    ],
    ['a file is missing', (copy) => renameSync(join(copy, 'model.onnx'), join(copy, 'other'))],
    [
      'something else stands there',
      (copy) => {
        renameSync(copy, `${copy}-moved`);
        writeFileSync(copy, 'not a folder');
      },
    ],
  ])('is rebuilt silently when %s', async (_, damage) => {
    const cache = folder();
    const dir = await productModel(folder(), ONE);
    await answer(dir, { dir: cache, key: KEY });
    damage(join(cache, KEY));
    expect(await answer(dir, { dir: cache, key: KEY })).toBe(1);
    expect((await treeOf(cache)).filter((path) => !path.includes('-moved'))).toEqual(COPY);
  });

  test('is done without where it can not be written, and nothing stays behind', async () => {
    const before = temporary();
    const file = join(folder(), 'file');
    writeFileSync(file, '');
    const dir = await productModel(folder(), ONE);
    expect(await answer(dir, { dir: join(file, 'cache'), key: KEY })).toBe(1);
    expect(await answer(dir, null)).toBe(1);
    expect(temporary()).toEqual(before);
  });

  test('is not used for small models', async () => {
    const cache = folder();
    await withModel(TRACED, async () => undefined, { cache: { dir: cache, key: KEY } });
    expect(await treeOf(cache)).toEqual([]);
  });

  test('removes what killed processes left, and not what others are writing', async () => {
    const cache = folder();
    const old = new Date(Date.now() - 2 * 3600 * 1000);
    for (const name of ['.building-old', '.stale-old', '.building-new', 'other-old']) mkdirSync(join(cache, name));
    for (const name of ['.building-old', '.stale-old', 'other-old']) utimesSync(join(cache, name), old, old);
    await answer(await productModel(folder(), ONE), { dir: cache, key: KEY });
    expect(await treeOf(cache)).toEqual(['.building-new/', ...COPY, 'other-old/']);
  });

  test('holds nothing of a model whose weights are refused', async () => {
    const cache = folder();
    const indices = { dtype: 'uint8', bytes: new Uint8Array(SIZE * SIZE).fill(9) } as const;
    const { file, offsets } = weightFile([indices]);
    const shape = `[${SIZE}, ${SIZE}]`;
    const statements = [
      `tensor<fp32, ${shape}> w = constexpr_lut_to_dense(indices = ${blob(`tensor<uint8, ${shape}>`, offsets[0]!)}, lut = tensor<fp32, [1, 1, 2, 1]>([[[[1.0], [2.0]]]]));`,
      `tensor<fp32, ${shape}> y = add(x = x, y = w);`,
    ];
    const dir = await writeModel(folder(), program(`tensor<fp32, ${shape}> x`, statements, 'y'), file);
    const before = temporary();
    expect(await codeOf(() => answer(dir, { dir: cache, key: KEY }))).toBe('MIL_BLOB');
    expect(await codeOf(() => answer(dir, null))).toBe('MIL_BLOB');
    expect(await treeOf(cache)).toEqual([]);
    expect(temporary()).toEqual(before);
  });

  test('is right for several openings at once', async () => {
    const cache = folder();
    const dir = await productModel(folder(), TWO);
    const answers = Array.from({ length: 3 }, () => answer(dir, { dir: cache, key: KEY }));
    expect(await Promise.all(answers)).toEqual([2, 2, 2]);
    expect(await treeOf(cache)).toEqual(COPY);
  });

  test('is right when openings of two artifacts contend for one key', async () => {
    const cache = folder();
    const dirs = [await productModel(folder(), ONE), await productModel(folder(), TWO)];
    const both = Array.from({ length: 8 }, (_, i) => answer(dirs[i % 2]!, { dir: cache, key: KEY }));
    expect(await Promise.all(both)).toEqual([1, 2, 1, 2, 1, 2, 1, 2]);
    expect(await treeOf(cache)).toEqual(COPY);
  });

  test.each(['', '..', '.hidden', 'a/b', 'a\\b', 'x'.repeat(200), 'a\0'])('refuses the key %j', async (key) => {
    expect(await codeOf(() => answer(TRACED, { dir: folder(), key }))).toBe('MIL_INPUT');
  });
});

test('weights of 64 MiB and more go through a file and answer the same as in memory', async () => {
  const rows = 4096;
  const before = temporary();
  const halves = Uint16Array.from({ length: rows * rows }, (_, i) => 0x2c00 + (i % 1021));
  const { file, offsets } = weightFile([{ dtype: 'fp16', bytes: bytesOf(halves) }]);
  const matrix = `tensor<fp16, [${rows}, ${rows}, 1, 1]>`;
  const shape = `tensor<fp32, [1, ${rows}, 1, 3]>`;
  const text = program(`${shape} x`, `${shape} y = conv(weight = ${blob(matrix, offsets[0]!)}, x = x);`, 'y');
  const dir = await writeModel(folder(), text, file);
  const x = noise(rows * 3);
  const results: Float32Array[] = [];
  const cache = folder();
  for (const fileBytes of [undefined, 2 ** 30]) {
    const options = { cache: { dir: cache, key: KEY }, threads: 1 };
    const model = await loadMlmodelc(dir, fileBytes === undefined ? options : { ...options, fileBytes });
    results.push((await model.run({ x })).y!);
    await model.release();
  }
  expect(statSync(join(cache, KEY, 'model.onnx.data')).size).toBe(rows * rows * 4);
  // Weights that are used where they lie are added up in another order than packed ones.
  expect(maxDifference(results[0]!, results[1]!)).toBeLessThan(1e-4);
  expect(temporary()).toEqual(before);
});

/** Change TRANSLATOR_VERSION together with this digest: older copies then are not used. */
test('the translation of the recorded graph belongs to this translator version', () => {
  const files = new BlobFiles(TRACED);
  const bytes = inlineModel(translate(parseMil(readMilText(TRACED)), files, true));
  files.close();
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
  expect({ version: TRANSLATOR_VERSION, digest }).toEqual({ version: 2, digest: 'e9cb5429b86f59e1' });
});
