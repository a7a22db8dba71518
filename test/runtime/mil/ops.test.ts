import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { CONSTEXPR } from '../../../runtime/mil/ops/constexpr.js';
import { KNOWN_OPERATIONS } from '../../../runtime/mil/ops/table.js';
import { workspace } from '../../workspace.js';
import { maxDifference, program, withModel, writeModel } from './models.js';

interface Case {
  readonly op: string;
  readonly call: string;
  readonly statements: readonly string[];
  readonly inputs: readonly { readonly name: string; readonly type: string; readonly data: readonly number[] }[];
  readonly outputs: readonly {
    readonly name: string;
    readonly shape: readonly number[];
    readonly data: readonly number[];
  }[];
}

const CASES = JSON.parse(readFileSync(new URL('../../fixtures/mil/ops.json', import.meta.url), 'utf8')) as Case[];
const folder = workspace();

/** Both sides compute in float32, in different orders; the values are below 20. */
const TOLERANCE = 1e-5;

async function run(one: Case, fuse: boolean): Promise<void> {
  const inputs = one.inputs.map(({ name, type }) => `${type} ${name}`).join(', ');
  const text = program(inputs, one.statements, one.outputs.map(({ name }) => name).join(', '));
  const feeds = Object.fromEntries(one.inputs.map(({ name, data }) => [name, Float32Array.from(data)]));
  await withModel(
    await writeModel(folder(), text),
    async (model) => {
      const results = await model.run(feeds);
      for (const { name, shape, data } of one.outputs) {
        expect(model.outputs.find((output) => output.name === name)?.shape).toEqual(shape);
        expect(maxDifference(results[name] as Float32Array, data)).toBeLessThanOrEqual(TOLERANCE);
      }
    },
    { fuse },
  );
}

describe('operations', () => {
  test.each(CASES.map((one) => [`${one.op}(${one.call.slice(0, 90)})`, one] as const))('%s', async (_, one) => {
    await run(one, true);
    await run(one, false);
  });

  test('every operation in the table has a case', () => {
    const elsewhere = ['const', ...CONSTEXPR];
    const covered = new Set([...elsewhere, ...CASES.map(({ op }) => op)]);
    expect(KNOWN_OPERATIONS.filter((op) => !covered.has(op))).toEqual([]);
  });
});
