import type { StoreSteps } from '../../registry/steps.js';

/** Called in place of each step: its place in the order of calls, its name, and the step itself. */
export type Meddle = (at: number, name: keyof StoreSteps, step: () => Promise<void>) => Promise<void>;

/** The real steps, with something that gets in between. */
export function stepsWith(real: StoreSteps, meddle: Meddle): StoreSteps {
  let count = 0;
  const wrap = (name: keyof StoreSteps) => {
    const step = real[name] as (...paths: string[]) => Promise<void>;
    return (...paths: string[]): Promise<void> => meddle(count++, name, () => step(...paths));
  };
  const names = Object.keys(real) as (keyof StoreSteps)[];
  return Object.fromEntries(names.map((name) => [name, wrap(name)])) as unknown as StoreSteps;
}

/** Steps of which only the first and last flush of each row of flushes counts: those between are alike. */
export function telling(steps: readonly (keyof StoreSteps)[]): number[] {
  return steps.flatMap((step, at) => {
    const isInside = step === 'sync' && steps[at - 1] === 'sync' && steps[at + 1] === 'sync';
    return isInside ? [] : [at];
  });
}
