import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { loadMlmodelc } from '../../../runtime/mil/session.js';
import { workspace } from '../../workspace.js';
import { type AttentionText, attentionProgram } from './attention.js';
import { maxDifference, noise, program, writeModel } from './models.js';

const folder = workspace();
const TRACED = fileURLToPath(new URL('../../fixtures/mil/traced-L64.mlmodelc', import.meta.url));

/** Both ways compute the same sums in float32, in different orders. */
const TOLERANCE = 1e-5;

interface Both {
  readonly fusedNodes: readonly string[];
  readonly difference: number;
}

/** Runs a model fused and node by node and compares every output. */
async function compare(dir: string): Promise<Both> {
  const results: Record<string, Float32Array>[] = [];
  const nodes: string[][] = [];
  const shapes: string[] = [];
  for (const fuse of [true, false]) {
    const model = await loadMlmodelc(dir, { fuse, threads: 1 });
    const feeds = model.inputs.map(({ name, shape }, i) => {
      const values = noise(
        shape.reduce((a, b) => a * b, 1),
        i + 1,
      );
      return [name, name.includes('mask') ? values.map((x) => (x > 0.5 ? -1e4 : 0)) : values] as const;
    });
    results.push(await model.run(Object.fromEntries(feeds)));
    nodes.push(model.translation.nodes.map(({ op }) => op));
    shapes.push(JSON.stringify(model.outputs));
    await model.release();
  }
  expect(shapes[0]).toBe(shapes[1]);
  const [fused, plain] = results as [Record<string, Float32Array>, Record<string, Float32Array>];
  const differences = Object.keys(plain).map((name) => maxDifference(fused[name]!, plain[name]!));
  expect(Object.keys(fused)).toEqual(Object.keys(plain));
  return { fusedNodes: nodes[0] as string[], difference: Math.max(...differences) };
}

async function compareText(text: string): Promise<Both> {
  return compare(await writeModel(folder(), text));
}

function count(both: Both, op: string): number {
  return both.fusedNodes.filter((name) => name === op).length;
}

const base: AttentionText = { heads: 3, width: 4, length: 5 };

describe('fused translation', () => {
  test('of laya-tiny traced by torch agrees with the plain one, before outputs are rounded', async () => {
    const text = readFileSync(join(TRACED, 'model.mil'), 'utf8');
    const wide = text.replace(
      /} -> \(logits, cls\);/,
      `tensor<fp32, [1, 1, 1, 32]> logits_wide = cast(dtype = string("fp32"), x = logits);
       tensor<fp32, [1, 128, 1, 1]> cls_wide = cast(dtype = string("fp32"), x = cls);
       } -> (logits_wide, cls_wide);`,
    );
    const weights = readFileSync(join(TRACED, 'weights', 'weight.bin'));
    const both = await compare(await writeModel(folder(), wide, weights));
    expect(both.difference).toBeGreaterThan(0);
    expect(both.difference).toBeLessThan(TOLERANCE);
    expect([count(both, 'Einsum'), count(both, 'Conv'), count(both, 'BatchNormalization')]).toEqual([0, 0, 0]);
    // One attention per layer, for all heads at once, and what the layers do lies as they take it.
    expect([count(both, 'MultiHeadAttention'), count(both, 'Softmax')]).toEqual([6, 0]);
    expect(count(both, 'Transpose')).toBeLessThan(10);
  });

  test.each<[string, AttentionText]>([
    ['with rotation', { ...base, rope: true }],
    ['without rotation', base],
    ['with one score output', { ...base, exposed: true }],
  ])('computes all heads at once %s', async (_, text) => {
    const both = await compareText(attentionProgram(text));
    expect(both.difference).toBeLessThan(TOLERANCE);
    expect([count(both, 'MultiHeadAttention'), count(both, 'Softmax')]).toEqual([1, text.exposed ? 1 : 0]);
  });

  test.each<[string, AttentionText]>([
    ['a scale differs', { ...base, scale: (head) => (head === 1 ? 0.25 : 0.5) }],
    ['the scale is 0, which the operator takes for its own', { ...base, scale: () => 0 }],
    ['a mask differs', { ...base, mask: (head) => (head === 2 ? 'n' : 'm') }],
    ['heads use values of another', { ...base, part: (head) => (head === 0 ? 1 : 0) }],
    ['the softmax runs over queries', { ...base, softmaxAxis: 3 }],
    ['there is one head', { ...base, heads: 1 }],
  ])('goes head by head where %s', async (_, text) => {
    const both = await compareText(attentionProgram(text));
    expect(both.difference).toBeLessThan(TOLERANCE);
    expect([count(both, 'MultiHeadAttention'), count(both, 'Softmax')]).toEqual([0, text.heads]);
  });

  test('takes a rotation of another kind as the statements say', async () => {
    const both = await compareText(attentionProgram({ ...base, rope: true, second: 'sub' }));
    expect(both.difference).toBeLessThan(TOLERANCE);
    // The attention over the rotated parts is not recognised either: they are not parts of one split.
    expect(count(both, 'Softmax')).toBe(3);
  });

  const matrix = 'tensor<fp32, [1, 6, 1, 4]>';
  const norm = `${matrix} a = layer_norm(axes = tensor<int32, [1]>([1]), epsilon = fp32(0.01), x = x);`;
  const vector = (name: string) =>
    `tensor<fp32, [1, 6, 1, 1]> ${name} = const()[val = tensor<fp32, [1, 6, 1, 1]>([[[[1.5]], [[2.0]], [[-1.0]], [[0.5]], [[3.0]], [[0.1]]]])];`;

  test('takes scale and shift into the norm', async () => {
    const statements = [norm, vector('g'), `${matrix} b = mul(x = g, y = a);`, `${matrix} y = add(x = b, y = g);`];
    const both = await compareText(program(`${matrix} x`, statements, 'y'));
    expect(both.difference).toBeLessThan(TOLERANCE);
    expect([count(both, 'Mul'), count(both, 'Add')]).toEqual([0, 0]);
  });

  test('leaves a norm alone whose result is used twice, or whose factor is computed', async () => {
    const twice = [norm, vector('g'), `${matrix} b = mul(x = a, y = g);`, `${matrix} y = add(x = b, y = a);`];
    const computed = [norm, `${matrix} y = mul(x = a, y = x);`];
    const wide = [norm, `${matrix} y = mul(x = a, y = fp32(2.0));`];
    for (const statements of [twice, computed, wide]) {
      const both = await compareText(program(`${matrix} x`, statements, 'y'));
      expect(both.difference).toBeLessThan(TOLERANCE);
      expect(count(both, 'Mul')).toBe(1);
    }
  });

  test('drops results that nobody reads', async () => {
    const both = await compareText(
      program(`${matrix} x`, [`${matrix} unused = exp(x = x);`, `${matrix} y = relu(x = x);`], 'y'),
    );
    expect(count(both, 'Exp')).toBe(0);
  });

  test('keeps matrices and whole tensors apart where they meet', async () => {
    const statements = [
      'tensor<fp32, [1, 4, 1, 6]> t = transpose(perm = tensor<int32, [4]>([0, 3, 2, 1]), x = x);',
      'tensor<fp32, [1, 4, 1, 6]> u = softmax(axis = int32(-1), x = t);',
      'tensor<fp32, [4, 6]> s = reshape(shape = tensor<int32, [2]>([4, 6]), x = u);',
      'tensor<fp32, [1, 4, 4, 6]> w = add(x = u, y = s);',
      `${matrix} z = transpose(perm = tensor<int32, [4]>([0, 3, 2, 1]), x = u);`,
      `${matrix} y = mul(x = z, y = x);`,
    ];
    const both = await compareText(program(`${matrix} x`, statements, 'y, w, s'));
    expect(both.difference).toBeLessThan(TOLERANCE);
  });
});
