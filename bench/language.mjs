// npm run bench:language: how often routing by language is right beside upstream, the kinds of disagreement, and its time.
import { decideLanguage } from '../dist/runtime/language/route.js';
import { fromPlain } from '../dist/schemas/json.js';
import { measure, tables } from './language/measure.mjs';

const milliseconds = (value) => `${value.toFixed(3)} ms`;
const started = performance.now();
await decideLanguage('Where is my order?');
const first = performance.now() - started;
const again = performance.now();
const measured = await measure((state) => decideLanguage(fromPlain(state)));
const each = (performance.now() - again) / (measured.lines.length + measured.states.length);

for (const table of tables(measured)) console.log(`${table}\n`);
console.log(`first decision, library loaded: ${milliseconds(first)}; each of the others: ${milliseconds(each)}`);
