import { join } from 'node:path';
import { writeTree } from '../workspace.js';

export interface SmallSpec {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dataType?: string;
}

/** Inputs and outputs of the model that the suites use, in the order of their names. */
export const SMALL = {
  inputs: [
    { name: 'a', shape: [1, 33] },
    { name: 'b', shape: [2] },
  ],
  outputs: [
    { name: 'y', shape: [1, 4] },
    { name: 'z', shape: [3, 32] },
  ],
} as const;

/** A compiled model's folder, as far as the stand-in and the simulated probe look at it. */
export async function writeSmallModel(
  parent: string,
  name = 'small.mlmodelc',
  specs: { readonly inputs: readonly SmallSpec[]; readonly outputs: readonly SmallSpec[] } = SMALL,
): Promise<string> {
  const schema = (list: readonly SmallSpec[]): unknown =>
    // In another order than that of the names, which the probe has to make.
    [...list].reverse().map(({ name: tensor, shape, dataType = 'Float16' }) => ({
      name: tensor,
      shape: `[${shape.join(', ')}]`,
      dataType,
      type: 'MultiArray',
    }));
  const metadata = [{ inputSchema: schema(specs.inputs), outputSchema: schema(specs.outputs) }];
  const folder = join(parent, name);
  await writeTree(folder, { 'metadata.json': JSON.stringify(metadata), 'coremldata.bin': 'small', 'model.mil': '' });
  return folder;
}

/** What the stand-in answers: element i comes from input number (i mod inputs), at (i mod its count). */
export function standInAnswer<T extends { readonly [index: number]: number; readonly length: number }>(
  inputs: readonly T[],
  count: number,
): number[] {
  return Array.from({ length: count }, (_, i) => {
    const source = inputs[i % inputs.length]!;
    return source[i % source.length]!;
  });
}
