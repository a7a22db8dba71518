import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openMlmodelc } from '../../runtime/mil/session.js';
import type { Switches } from './switches.js';

export interface Spec {
  readonly name: string;
  readonly shape: readonly number[];
}

/** A model as the simulated probe runs it: FP16 bits in the order of the specs. */
export interface SimulatedModel {
  readonly inputs: readonly Spec[];
  readonly outputs: readonly Spec[];
  predict(inputs: readonly Uint16Array[]): Promise<Uint16Array[]>;
}

export class Refusal extends Error {
  readonly code: string;
  readonly where: string;

  constructor(code: string, message: string, where: string) {
    super(message);
    this.code = code;
    this.where = where;
  }
}

export const countOf = (spec: Spec): number => spec.shape.reduce((product, dimension) => product * dimension, 1);

export async function loadModel(path: string, switches: Switches): Promise<SimulatedModel> {
  if (!existsSync(join(path, 'coremldata.bin'))) throw new Refusal('MODEL_MISSING', 'no compiled model', path);
  if (switches.refuses !== null && path.includes(switches.refuses)) {
    throw new Refusal('MODEL_REFUSED', 'the simulated probe was told to refuse it', path);
  }
  return switches.models === 'portable' ? portable(path) : standIn(path);
}

function inOrder(specs: readonly Spec[]): Spec[] {
  return specs
    .map(({ name, shape }) => ({ name, shape }))
    .sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
}

async function portable(path: string): Promise<SimulatedModel> {
  const model = await openMlmodelc(path, { threads: 1 });
  const [inputs, outputs] = [inOrder(model.inputs), inOrder(model.outputs)];
  return {
    inputs,
    outputs,
    predict: async (given) => {
      const { widenHalf, toHalfBits } = await import('../../runtime/float16.js');
      const feeds = Object.fromEntries(inputs.map(({ name }, index) => [name, widenHalf(given[index]!)]));
      const results = await model.run(feeds);
      return outputs.map(({ name }) => Uint16Array.from(results[name]!, toHalfBits));
    },
  };
}

interface Metadata {
  readonly inputSchema: readonly { readonly name: string; readonly shape: string; readonly dataType: string }[];
  readonly outputSchema: Metadata['inputSchema'];
}

/** Element i of an output is taken from input number (i mod inputs), at (i mod its count). */
function standIn(path: string): SimulatedModel {
  const [metadata] = JSON.parse(readFileSync(join(path, 'metadata.json'), 'utf8')) as [Metadata];
  const specs = (schema: Metadata['inputSchema']): Spec[] =>
    inOrder(
      schema.map(({ name, shape, dataType }) => {
        if (dataType !== 'Float16') throw new Refusal('MODEL_INTERFACE', `${name} is no FP16 array`, path);
        return { name, shape: (shape.match(/\d+/g) ?? []).map(Number) };
      }),
    );
  const [inputs, outputs] = [specs(metadata.inputSchema), specs(metadata.outputSchema)];
  const predict = async (given: readonly Uint16Array[]): Promise<Uint16Array[]> =>
    outputs.map((output) =>
      Uint16Array.from({ length: countOf(output) }, (_, i) => {
        const source = given[i % given.length]!;
        return source[i % source.length]!;
      }),
    );
  return { inputs, outputs, predict };
}
