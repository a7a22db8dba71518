// node bench/shortlist.mjs [--model laya-tiny]: how often the right label of 32 is kept in a shortlist of k, with the
// model's own encoder (embed: 'model'), with words that texts share, and by chance. Needs the model's any-length graph;
// laya-tiny's is built for it where none is registered. The labelled texts are in shortlist/intents.json.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { table } from '../dist/pipeline/text.js';
import { Laya } from '../dist/runtime/index.js';
import { load, root, timed } from './lib.mjs';

const { values } = parseArgs({ options: { model: { type: 'string', default: 'laya-tiny' } } });
const cases = JSON.parse(readFileSync(join(root, 'bench', 'shortlist', 'intents.json'), 'utf8'));
const labels = Object.keys(cases);
const texts = Object.entries(cases).flatMap(([label, list]) => list.map((text) => ({ label, text })));
const question = (criteria) => ({ intent: { type: 'choice', instructions: 'What does the customer want?', criteria } });
const KEPT = [1, 3, 5, 8, 16];

/** Counts of the words of all texts of a call, by their first four letters. */
function words(all) {
  const stems = all.map(
    (text) =>
      text
        .toLowerCase()
        .match(/[a-z]+/g)
        ?.map((word) => word.slice(0, 4)) ?? [],
  );
  const known = [...new Set(stems.flat())];
  return stems.map((list) => known.map((stem) => list.filter((one) => one === stem).length));
}

/** Share of texts whose label is among the first k. */
async function recall(laya, embed) {
  const ranks = [];
  for (const { label, text } of texts) {
    const k = labels.length - 1;
    const { shortlist } = await laya.predictShortlist({ context: text, questions: question(labels) }, { embed, k });
    const rank = shortlist.intent.labels.indexOf(label);
    ranks.push(rank < 0 ? k : rank);
  }
  return KEPT.map((k) => ranks.filter((rank) => rank < k).length / texts.length);
}

const scratch = mkdtempSync(join(tmpdir(), 'laya-bench-shortlist-'));
try {
  const own = values.model === 'laya-tiny' ? { LAYA_APPLE_CACHE: scratch } : {};
  const env = { ...process.env, ...own };
  const build = ['bin/laya-artifacts.js', 'build', values.model, '--graph', 'any-length'];
  if (values.model === 'laya-tiny') await timed(process.execPath, build, { env });
  const laya = await Laya.open(values.model, { env, device: 'cpu' });
  const percent = (share) => `${Math.round(share * 100)} %`;
  const row = async (name, shares) => [name, ...(await shares).map(percent)];
  const rows = [
    await row(`${values.model}, own encoder`, recall(laya, 'model')),
    await row('shared words', recall(laya, words)),
    await row(
      'chance',
      KEPT.map((k) => k / labels.length),
    ),
  ];
  await laya.close();
  console.log(table(['EMBED', ...KEPT.map((k) => `K=${k}`)], rows));
  console.log(`${texts.length} texts, ${labels.length} labels; ${load()}`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
