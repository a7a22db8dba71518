import type { ProbeModel } from './client.js';
import type { ProbeInput } from './tensors.js';

/**
 * The load-time probe: a compute plan tells where operations would run, not where a loaded model does run. So the loaded
 * model is timed against the same artifact on the CPU alone; one that really runs on the Neural Engine takes 0.32 to 0.5
 * of that time (measured by laya-apple), one that fell back to the CPU about all of it.
 */
export interface LoadProbe {
  /** Fastest prediction on `CPU_AND_NE`, milliseconds. */
  readonly ane_ms: number;
  /** Fastest prediction on the CPU alone, milliseconds. */
  readonly cpu_ms: number;
  /** The first by the second; 1, which never passes, when the CPU's time was too short to be told. */
  readonly ratio: number;
  /** Predictions of each that were timed. */
  readonly runs: number;
}

/** Largest ratio that passes unless a caller says otherwise. */
export const MAX_RATIO = 0.8;
const RUNS = 5;

/**
 * Times both models on the same inputs, by turns, so that the load of the machine slows both alike; the fastest of each
 * counts, by Core ML's own time. The first call of each isn't timed. Throws ProbeError.
 */
export async function timeAgainstCpu(
  models: { readonly ane: ProbeModel; readonly cpu: ProbeModel },
  inputs: Record<string, ProbeInput>,
  signal?: AbortSignal,
  runs = RUNS,
): Promise<LoadProbe> {
  const fastest = { ane: Number.POSITIVE_INFINITY, cpu: Number.POSITIVE_INFINITY };
  for (let run = 0; run <= runs; run++)
    for (const device of ['ane', 'cpu'] as const) {
      const { predicted } = await models[device].predict(inputs, signal);
      if (run > 0) fastest[device] = Math.min(fastest[device], predicted);
    }
  const ratio = fastest.cpu > 0 ? Math.round((fastest.ane / fastest.cpu) * 1000) / 1000 : 1;
  return { ane_ms: fastest.ane / 1000, cpu_ms: fastest.cpu / 1000, ratio, runs };
}

/** True for a ratio that says the model runs on the Neural Engine. */
export const isFast = ({ ratio }: LoadProbe, maxRatio = MAX_RATIO): boolean => ratio <= maxRatio;
