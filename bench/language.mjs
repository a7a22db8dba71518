// npm run bench:language: how often routing by language is right beside upstream, every kind of disagreement, its time.
import { decideLanguage } from '../dist/runtime/language/route.js';
import { fromPlain } from '../dist/schemas/json.js';
import { measure, tables } from './language/measure.mjs';
import { load } from './lib.mjs';

/** Milliseconds of processor time so far. */
const spent = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const started = spent();
await decideLanguage('Where is my order?');
const first = spent() - started;
const again = spent();
const measured = await measure((state) => decideLanguage(fromPlain(state)));
const each = (spent() - again) / (measured.lines.length + measured.states.length);

for (const table of tables(measured)) console.log(`${table}\n`);
console.log(
  `first decision ${first.toFixed(0)} ms of processor time, each of the others ${each.toFixed(2)} ms; ${load()}`,
);
