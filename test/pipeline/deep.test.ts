// `verify --deep` off the machine that an artifact was proven on, over the simulated probe: no test here says anything
// about Core ML or a Neural Engine.
import { beforeAll, describe, expect, it } from '@jest/globals';
import { DeepCheck } from '../../pipeline/deep.js';
import { buildArtifacts } from '../../pipeline/line.js';
import { portableToolchain } from '../../pipeline/toolchain/portable.js';
import type { Toolchain } from '../../pipeline/toolchain/toolchain.js';
import { validateArtifacts } from '../../pipeline/validate.js';
import { artifactFolder } from '../../registry/paths.js';
import { readArtifact } from '../../registry/read.js';
import { registerLayaTiny } from '../registered.js';
import { keptFolder, workspace } from '../workspace.js';
import { simulatedMac } from './apple.js';
import { testContext, testOrder } from './context.js';

const folder = workspace();
const mac = simulatedMac();
const KEY = { model: testOrder().model, bucket: 64 };
const [proven, bought] = [keptFolder(), keptFolder()];

/** One with both kinds of evidence, and one with a Mac's alone. */
beforeAll(async () => {
  await registerLayaTiny(proven(), [64]);
  await validateArtifacts(testOrder({ toolchain: await ready() }), testContext(proven()));
  await buildArtifacts(testOrder({ toolchain: mac() }), testContext(bought()));
}, 300_000);

async function ready(...args: Parameters<typeof mac>): Promise<Toolchain> {
  const toolchain = mac(...args);
  await toolchain.ready(testContext(folder()));
  return toolchain;
}

/** What is found on a machine with these two toolchains; `own` is what measures Apple evidence, where it can. */
async function found(root: string, own: Toolchain, portable = portableToolchain()) {
  const kinds: string[] = [];
  const measures = async (kind: Toolchain['kind']) => {
    kinds.push(kind);
    return kind === 'portable' ? portable : own;
  };
  const artifact = await readArtifact(KEY, artifactFolder(root, KEY));
  const context = testContext(folder());
  const problem = await new DeepCheck(measures, context).problemOf(artifact);
  return { code: problem?.code, kinds, told: context.events.filter(({ kind }) => kind === 'skipped').length };
}

/** A portable executor that is wrong. */
function wrong(): Toolchain {
  const toolchain = portableToolchain();
  const open: Toolchain['open'] = async (model) => {
    const executable = await toolchain.open(model);
    const run: typeof executable.run = async (inputs) => {
      const outputs = await executable.run(inputs);
      return { ...outputs, logits: outputs.logits!.map((value, i) => value + i) };
    };
    return { run, release: () => executable.release() };
  };
  return { ...toolchain, open };
}

describe('the deep check', () => {
  const other = { device: { system: { name: 'macOS', version: '16.0', build: '25A1' } } };

  it('runs the gates of the Mac that the artifact was proven on', async () => {
    expect(await found(proven(), await ready(), wrong())).toEqual({ code: undefined, kinds: ['apple'], told: 0 });
  });

  it.each([
    ['off a Mac', async () => portableToolchain()],
    ['on another Mac', () => ready(other)],
  ])('measures the portable evidence %s', async (_where, own) => {
    expect(await found(proven(), await own())).toEqual({ code: undefined, kinds: ['apple', 'portable'], told: 1 });
    expect((await found(proven(), await own(), wrong())).code).toBe('PARITY_FAILED');
  });

  it.each([
    ['off a Mac', async () => portableToolchain()],
    ['on another Mac', () => ready(other)],
  ])("can say nothing about a Mac's evidence alone %s", async (_where, own) => {
    expect((await found(bought(), await own())).code).toBe('PROFILE_MISMATCH');
  });
});
