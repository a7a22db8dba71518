// How language detectors compare on the labelled lines in Latin script, each as it comes: the language it names is
// English, or it is not. Times are of the processor, and like memory the least of five runs.
//
//     npm install eld tinyld franc-min franc lande cld3-asm fasttext.wasm.js @nlpjs/language    (in any folder)
//     npm run bench:detectors -- FOLDER
import { spawnSync } from 'node:child_process';
import { print } from '../lib.mjs';
import { labelledLines } from './measure.mjs';

/** What each takes to make `detect`, a function from text to a code. */
const CANDIDATES = {
  'eld, extrasmall': `const { eld } = await import('eld/extrasmall'); detect = (text) => eld.detect(text).language;`,
  'eld, small': `const { eld } = await import('eld/small'); detect = (text) => eld.detect(text).language;`,
  'eld, large': `const { eld } = await import('eld/large'); detect = (text) => eld.detect(text).language;`,
  tinyld: `detect = (await import('tinyld')).detect;`,
  'tinyld, heavy': `detect = (await import('tinyld/heavy')).detect;`,
  'franc-min': `const { franc } = await import('franc-min'); detect = (text) => franc(text, { minLength: 1 });`,
  franc: `const { franc } = await import('franc'); detect = (text) => franc(text, { minLength: 1 });`,
  lande: `const lande = (await import('lande')).default; detect = (text) => lande(text)[0][0];`,
  'cld3-asm': `const { loadModule } = await import('cld3-asm'); const found = (await loadModule()).create(0, 4000);
    detect = (text) => found.findLanguage(text).language;`,
  'fasttext.wasm.js': `const model = await (await import('fasttext.wasm.js')).getLIDModel(); await model.load();
    detect = async (text) => (await model.identify(text)).alpha2;`,
  '@nlpjs/language': `const { Language } = (await import('@nlpjs/language')).default; const found = new Language();
    detect = (text) => found.guess(text)[0].alpha2;`,
};

const CHILD = (setup) => `
  const spent = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
  const started = spent();
  let detect;
  ${setup}
  await detect('Where is my order?');
  const load = spent() - started;
  const texts = JSON.parse(await new Response(process.stdin).text());
  const memory = process.memoryUsage().rss;
  const again = spent();
  const english = [];
  for (const text of texts) english.push(['en', 'eng'].includes(await detect(text)));
  const each = (spent() - again) / texts.length;
  console.log(JSON.stringify({ load, memory, each, english }));
  process.exit(0);
`;

const lines = labelledLines().filter(({ kind }) => kind !== 'other script');
const input = JSON.stringify(lines.map(({ text }) => text));
const rows = Object.entries(CANDIDATES).map(([name, setup]) => {
  const args = ['--input-type=module', '--eval', CHILD(setup)];
  const runs = [1, 2, 3, 4, 5].map(() => {
    const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: process.argv[2], input, encoding: 'utf8' });
    if (!stdout) throw new Error(`${name}: ${stderr}`);
    return JSON.parse(stdout);
  });
  const [{ english }] = runs;
  const [load, memory, each] = ['load', 'memory', 'each'].map((key) => Math.min(...runs.map((run) => run[key])));
  const share = (chosen) => {
    const right = chosen.filter(({ language }, index) => (language === 'en') === english[lines.indexOf(chosen[index])]);
    return `${((100 * right.length) / chosen.length).toFixed(1)}%`;
  };
  const [own, others] = [
    lines.filter(({ language }) => language === 'en'),
    lines.filter(({ language }) => language !== 'en'),
  ];
  return [
    name,
    share(own),
    share(others),
    `${load.toFixed(0)} ms`,
    `${(memory / 1e6).toFixed(0)} MB`,
    `${each.toFixed(2)} ms`,
  ];
});
print(['DETECTOR', 'ENGLISH', 'OTHERS', 'FIRST ANSWER', 'MEMORY', 'EACH LINE'], rows);
