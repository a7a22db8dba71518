import { dirname } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parseMil } from '../../../runtime/mil/parser.js';
import { openMlmodelc } from '../../../runtime/mil/session.js';
import { codeOf, workspace, writeTree } from '../../workspace.js';
import { crateFiles } from './crate.js';
import { withModel } from './models.js';

const folder = workspace();

/** The models that Apple's compiler made, which the portable compiler's own tests compare with: folder to files. */
function appleModels(): Map<string, Record<string, Buffer>> {
  const files = crateFiles();
  const models = new Map<string, Record<string, Buffer>>();
  for (const path of files.keys()) {
    if (!path.endsWith('/model.mil')) continue;
    const root = dirname(path);
    const inside = [...files].filter(([other]) => other.startsWith(`${root}/`));
    models.set(
      root.replace(/^tests\//, ''),
      Object.fromEntries(inside.map(([other, data]) => [other.slice(root.length + 1), data])),
    );
  }
  return models;
}

const MODELS = appleModels();

async function unpack(name: string): Promise<string> {
  const dir = folder();
  await writeTree(dir, MODELS.get(name)!);
  return dir;
}

const fixture = (name: string) => `fixtures/${name}/expected-macos.mlmodelc`;
const pipeline = (name: string, part: number) => `pipeline-fixtures/${name}/expected.mlmodelc/model${part}`;

/** Inputs and what the statements of each program make of them, worked out by hand. */
const RUNS: readonly [string, Record<string, number[]>, Record<string, number[]>][] = [
  [
    fixture('fp16-subnormal-cast'),
    { input: [0, 0, 0, 0, 0] },
    { output: [2 ** -24, 168 * 2 ** -24, 1023 * 2 ** -24, 2 ** -14, -168 * 2 ** -24] },
  ],
  [fixture('neg-0d-scalar'), { negInput: [2.5] }, { negOutput: [-2.5] }],
  [fixture('quantized-constexpr'), { input: [0, 0, 0, 0] }, { output: [-63.5, 0, 0.5, 64] }],
  [pipeline('cast', 0), { input: [1.0002, -3, 65504, 0.1] }, { rounded: [1, -3, 65504, 0.0999755859375] }],
  [pipeline('cast', 1), { rounded: [1, 2, 3, 0.1] }, { result: [1, 2, 3, 0.0999755859375] }],
  [pipeline('scalar', 0), { input: [0.1] }, { rounded: [0.0999755859375] }],
  [pipeline('masked', 0), { input: [1, -1, 0, 0.5] }, { mask: [1, 0, 0, 1], rounded: [1, -1, 0, 0.5] }],
  [
    pipeline('masked-int32', 1),
    { input: [1, 2, 3, 4], mask_precision_io: [1, 0, 0, 1], rounded: [9, 8, 7, 6] },
    { result: [9, 2, 3, 6] },
  ],
  [pipeline('indexed', 0), { input: [1, 2, 4, 3] }, { indices: [1, 0], rounded: [1, 2, 4, 3] }],
  [pipeline('indexed', 1), { indices: [-1, 5], rounded: [1, 2, 4, 3] }, { result: [2, 2, 3, 3] }],
];

describe("models that Apple's compiler made", () => {
  test('are all read', () => {
    expect(MODELS.size).toBeGreaterThan(20);
    for (const files of MODELS.values()) expect(parseMil(files['model.mil']!.toString()).version).toBe('1.3');
  });

  test.each(RUNS)('%s runs', async (name, inputs, outputs) => {
    await withModel(await unpack(name), async (model) => {
      const feeds = Object.entries(inputs).map(([key, data]) => [key, Float32Array.from(data)]);
      const results = await model.run(Object.fromEntries(feeds));
      expect(Object.fromEntries(Object.entries(results).map(([key, data]) => [key, Array.from(data)]))).toEqual(
        outputs,
      );
    });
  });

  test('with flexible shapes or several functions are refused by name; all others open', async () => {
    const refused: string[] = [];
    for (const name of MODELS.keys()) {
      const dir = await unpack(name);
      const code = await codeOf(async () => (await openMlmodelc(dir)).release());
      if (code === 'no error') continue;
      expect(code).toBe('MIL_UNSUPPORTED');
      refused.push(name.split('/')[1]!);
    }
    expect([...new Set(refused)].sort()).toEqual([
      'dynamic',
      'dynamic-boundary',
      'flexible-enumerated',
      'flexible-gather',
      'flexible-multifunction',
      'flexible-range',
      'flexible-weighted-legacy',
    ]);
  });
});
