import { openProbe, type Probe, type ProbeOptions } from '../../../runtime/probe/client.js';
import { simulatedProbe } from '../../probe/programs.js';
import { standInAnswer, writeSmallModel } from '../../probe/small-model.js';
import type { Switches } from '../../probe/switches.js';
import { workspace } from '../../workspace.js';

/** Inputs of the small model, and what it makes of them. */
export const INPUTS = { a: Float32Array.from({ length: 33 }, (_, i) => i), b: Float32Array.of(0.5, -2) };
export const ANSWER = {
  y: Float32Array.from(standInAnswer([INPUTS.a, INPUTS.b], 4)),
  z: Float32Array.from(standInAnswer([INPUTS.a, INPUTS.b], 96)),
};

/** For a test file: folders, the simulated probe, and ways to open it on the small model. */
export function smallProbe() {
  const folder = workspace();
  const simulated = simulatedProbe();
  const options = async (
    switches: Partial<Switches> = {},
    more: Partial<ProbeOptions> = {},
  ): Promise<ProbeOptions> => ({ ...simulated(switches), models: [await writeSmallModel(folder())], ...more });
  const opened = async (switches: Partial<Switches> = {}, more: Partial<ProbeOptions> = {}): Promise<Probe> =>
    openProbe(await options(switches, more));
  return { folder, simulated, options, opened };
}
