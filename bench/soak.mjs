// npm run bench:soak [-- --minutes 10 --cycles 50]: opens and closes laya-tiny so many times, then answers requests of many
// kinds for so long, and prints the resident memory on the way. Ends with 1 when it grew by more than --bound MB after
// the first fifth of either.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Laya } from '../dist/runtime/index.js';
import { megabytes, print, root, timed } from './lib.mjs';

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    cycles: { type: 'string', default: '50' },
    bound: { type: 'string', default: '48' },
  },
});
const store = mkdtempSync(join(tmpdir(), 'laya-bench-soak-'));
const build = [join(root, 'bin', 'laya-artifacts.js'), 'build', 'laya-tiny', '--graph', 'all'];
await timed(process.execPath, build, { env: { ...process.env, LAYA_APPLE_CACHE: store } });

const criteria = ['billing', 'shipping', 'technical', 'account', 'returns'];
const request = (i) => ({
  context: `${i} ${'I was charged twice for the order. '.repeat(i % 17)}`,
  questions: Object.fromEntries(
    Array.from({ length: 1 + (i % 8) }, (_, k) => [
      `q${k}`,
      { type: 'choice', instructions: `Which team, for ${i % 500}?`, criteria },
    ]),
  ),
});

/** Takes measurements of the resident memory; the first fifth is warming up. */
function watch(name) {
  const samples = [];
  return {
    sample: () => {
      globalThis.gc?.();
      samples.push(process.memoryUsage().rss);
    },
    row: () => {
      const settled = samples.slice(Math.floor(samples.length / 5));
      const grown = settled.at(-1) - settled[0];
      const ok = grown <= Number(options.bound) * 1e6;
      if (!ok) process.exitCode = 1;
      const figures = [settled[0], settled.at(-1), Math.max(...settled)].map(megabytes);
      return [name, ...figures, `${Math.round(grown / 1e5) / 10} MB`, ok ? 'flat' : 'grew'];
    },
  };
}

const opening = watch(`${options.cycles} times opened and closed`);
for (let i = 0; i < Number(options.cycles); i++) {
  const laya = await Laya.open('laya-tiny', { root: store });
  await laya.warmUp();
  await laya.predict(request(i));
  await laya.close();
  opening.sample();
}

const asking = watch(`${options.minutes} min of requests`);
const laya = await Laya.open('laya-tiny', { root: store });
const end = performance.now() + Number(options.minutes) * 60_000;
let answered = 0;
while (performance.now() < end) {
  await Promise.all(Array.from({ length: 4 }, () => laya.predict(request(answered++))));
  if (answered % 100 === 0) asking.sample();
}
await laya.close();
rmSync(store, { recursive: true, force: true });
print(['WHAT', 'RSS AFTER A FIFTH', 'AT THE END', 'MOST', 'GROWN', 'VERDICT'], [opening.row(), asking.row()]);
console.log(`${answered} requests answered`);
