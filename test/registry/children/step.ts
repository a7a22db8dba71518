// Runs an operation and ends itself before or after one of its steps: node step.mjs ROOT OPERATION INDEX WHEN SIGNAL
import { storeSteps } from '../../../registry/steps.js';
import { stepsWith } from '../faulty-steps.js';
import { OPERATIONS } from '../operations.js';

const [root, operation, index, when, signal] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  NodeJS.Signals,
];
const die = (): Promise<never> => {
  process.kill(process.pid, signal);
  return new Promise(() => undefined);
};
const steps = stepsWith(storeSteps(), async (at, _name, step) => {
  if (at !== Number(index)) return step();
  if (when === 'before') return die();
  await step().catch(() => undefined);
  return die();
});
await OPERATIONS[operation]!.run(root, steps);
