import { describe, expect, it } from '@jest/globals';
import { type StoreSteps, storeSteps } from '../../registry/steps.js';
import { bundle, ended, startChild } from '../child.js';
import { workspace } from '../workspace.js';
import { type Meddle, stepsWith, telling } from './faulty-steps.js';
import { OPERATIONS, recover, served, wholeCopies } from './operations.js';

const folder = workspace();
const CHILD = bundle('registry/children/step.ts');
const NAMES = Object.keys(OPERATIONS);

/** The real steps without the flushes, which take long and change nothing that can be seen here. */
const QUICK = storeSteps({ sync: async () => undefined });

async function prepared(name: string): Promise<string> {
  const root = folder();
  await OPERATIONS[name]!.prepare(root);
  return root;
}

/** Names of the steps that an operation takes, in their order. */
async function stepsOf(name: string): Promise<(keyof StoreSteps)[]> {
  const taken: (keyof StoreSteps)[] = [];
  const root = await prepared(name);
  const record: Meddle = (_at, step, go) => {
    taken.push(step);
    return go();
  };
  await OPERATIONS[name]!.run(root, stepsWith(QUICK, record));
  expect(await served(root)).toBe(OPERATIONS[name]!.gives);
  return taken;
}

/** What must hold whatever happened, and that the next build heals it. */
async function expectSound(root: string, name: string, what: string): Promise<void> {
  const { serves, keeps } = OPERATIONS[name]!;
  const found = await served(root);
  expect({ what, found, isAllowed: serves.includes(found) }).toMatchObject({ isAllowed: true });
  const copies = await wholeCopies(root);
  expect({ what, isLost: keeps && copies === 0 }).toMatchObject({ isLost: false });
  await recover(root, QUICK);
  expect({ what, found: await served(root) }).toEqual({ what, found: 'third' });
}

const PLACES = [
  ['before', false],
  ['after', true],
] as const;

describe.each(NAMES)('%s', (name) => {
  // B02, R23: a step that fails, before it did anything; and after it was done, where the code makes no difference.
  it.each([
    ['EIO', PLACES],
    ['ENOSPC', PLACES.slice(0, 1)],
    ['EACCES', PLACES.slice(0, 1)],
  ] as const)('survives %s at every step', async (code, places) => {
    const steps = await stepsOf(name);
    for (const index of telling(steps))
      for (const [when, isDone] of places) {
        const root = await prepared(name);
        const meddle: Meddle = async (at, step, go) => {
          if (at !== index) return go();
          if (isDone) await go();
          throw Object.assign(new Error(`${step} gave ${code}`), { code });
        };
        await OPERATIONS[name]!.run(root, stepsWith(QUICK, meddle)).catch(() => undefined);
        await expectSound(root, name, `${code} ${when} step ${index}, ${steps[index]}`);
      }
  });

  // A process that dies does nothing more: no cleaning up, no putting back.
  it('survives that everything ends before and after every step', async () => {
    const steps = await stepsOf(name);
    for (const index of telling(steps))
      for (const [when, isDone] of PLACES) {
        const root = await prepared(name);
        await new Promise<void>((resolve) => {
          const meddle: Meddle = async (at, _step, go) => {
            if (at !== index) return go();
            if (isDone) await go().catch(() => undefined);
            resolve();
            return new Promise(() => undefined);
          };
          void OPERATIONS[name]!.run(root, stepsWith(QUICK, meddle));
        });
        await expectSound(root, name, `ended ${when} step ${index}, ${steps[index]}`);
      }
  });

  it.each(['SIGKILL', 'SIGINT'] as const)('survives %s around every step that readers see', async (signal) => {
    const steps = await stepsOf(name);
    const seen = steps.flatMap((step, index) => (step === 'sync' ? [] : [index]));
    for (const index of seen) {
      const root = await prepared(name);
      // One of the two is enough here: every place is looked at above.
      const when = (signal === 'SIGKILL') === (index % 2 === 0) ? 'before' : 'after';
      const child = await ended(startChild(CHILD, [root, name, String(index), when, signal]));
      const what = `${signal} ${when} step ${index}, ${steps[index]}`;
      expect({ what, signal: child.signal, stderr: child.stderr }).toEqual({ what, signal, stderr: '' });
      await expectSound(root, name, what);
    }
  });
});
