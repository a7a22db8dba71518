// Figures of language routing on the recorded lines and states, as Markdown. bench/language.mjs prints them; a test
// compares them with docs/language-routing.md.
import { readFileSync } from 'node:fs';

const LABELLED = new URL('data/labelled.tsv', import.meta.url);
const STATES = new URL('../../test/fixtures/language-states.json', import.meta.url);

/** The labelled lines: source, language, upstream's code, text. */
export function labelledLines() {
  const lines = readFileSync(LABELLED, 'utf8').trimEnd().split('\n');
  return lines.map((line) => {
    const [source, language, upstream, text] = line.split('\t');
    return { source, language, upstream, text, kind: kindOf(language, text) };
  });
}

/** The recorded states: kind, expected, state, upstream. */
const recordedStates = () => JSON.parse(readFileSync(STATES, 'utf8')).states;

const KINDS = ['English', 'other, Latin script', 'other script'];

function kindOf(language, text) {
  if (language === 'en') return KINDS[0];
  const latin = text.match(/\p{Script=Latin}/gu)?.length ?? 0;
  return 2 * latin > (text.match(/\p{L}/gu)?.length ?? 0) ? KINDS[1] : KINDS[2];
}

const isMultilingual = (code) => code === 'language_not_english' || code === 'language_non_latin_script';
/** Right with the default that this project and upstream 0.3 have, and with upstream 0.4's. */
const rightByDefault = {
  english: (code, english) => isMultilingual(code) !== english,
  multilingual: (code, english) => (code === 'language_english') === english,
};

/** Decides every line and state, and counts. `decide` takes plain JSON. */
export async function measure(decide) {
  const lines = [];
  for (const line of labelledLines()) lines.push({ ...line, ours: (await decide(line.text)).model_routing });
  const states = [];
  for (const one of recordedStates()) states.push({ ...one, ours: (await decide(one.state)).model_routing });
  return { lines, states };
}

export function tables({ lines, states }) {
  return [bySource(lines), sameDecision(lines), disagreements(lines), byShape(states), stateDisagreements(states)];
}

function counts(rows) {
  const right = (name, code) => rows.filter((row) => rightByDefault[name](row[code], row.language === 'en')).length;
  const share = (count) => `${count} (${((100 * count) / rows.length).toFixed(1)}%)`;
  const figures = [right('english', 'ours'), right('english', 'upstream'), right('multilingual', 'upstream')];
  return [String(rows.length), ...figures.map(share)];
}

function bySource(lines) {
  const rows = [];
  const sources = [...new Set(lines.map(({ source }) => source))];
  for (const kind of KINDS) {
    for (const source of sources) {
      const chosen = lines.filter((line) => line.source === source && line.kind === kind);
      if (chosen.length > 0) rows.push([kind, source, languages(chosen), ...counts(chosen)]);
    }
    const all = lines.filter((line) => line.kind === kind);
    rows.push([`**${kind}**`, '**all**', languages(all), ...counts(all)]);
  }
  rows.push(['**all**', '**all**', languages(lines), ...counts(lines)]);
  const head = [
    'Lines',
    'Source',
    'Languages',
    'Number',
    'Right',
    'Upstream, default `english`',
    'Upstream, default `multilingual`',
  ];
  return markdown(head, rows);
}

const languages = (rows) => String(new Set(rows.map(({ language }) => language)).size);

function sameDecision(lines) {
  const row = (name, chosen) => [
    name,
    String(chosen.length),
    String(chosen.filter((one) => one.ours === one.upstream).length),
  ];
  const english = lines.filter((line) => line.kind === KINDS[0]);
  return markdown(
    ['Lines', 'Number', 'The same code here'],
    [
      row(
        'English that upstream takes for English',
        english.filter(({ upstream }) => upstream === 'language_english'),
      ),
      row(
        'Scripts other than Latin',
        lines.filter((line) => line.kind === KINDS[2]),
      ),
    ],
  );
}

const short = (code) => code.replace('language_', '').replace('_default', '');
const differ = (rows, code) => rows.filter((row) => row.ours !== code(row));

function grouped(rows, key) {
  const groups = new Map();
  for (const row of rows) groups.set(key(row), [...(groups.get(key(row)) ?? []), row]);
  return [...groups.values()];
}

function disagreements(lines) {
  const different = differ(lines, (line) => line.upstream);
  const groups = grouped(different, ({ kind, upstream, ours }) => [kind, upstream, ours].join());
  groups.sort(([a], [b]) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || a.upstream.localeCompare(b.upstream));
  const rows = groups.map((group) => {
    const [{ kind, upstream, ours }] = group;
    return [kind, short(upstream), short(ours), String(group.length), example(group)];
  });
  return markdown(['Lines', 'Upstream', 'Here', 'Number', 'The shortest'], rows);
}

function example(group) {
  const { text, language } = [...group].sort((a, b) => a.text.length - b.text.length)[0];
  return `\`${text}\` (${language})`;
}

function byShape(states) {
  const rows = grouped(states, ({ kind, expected }) => `${kind} ${expected}`).map((group) => {
    const [{ kind, expected }] = group;
    const right = (code) => group.filter((one) => isMultilingual(code(one)) === (expected === 'other')).length;
    const told = expected === null ? ['', ''] : [right((one) => one.ours), right((one) => one.upstream.code)];
    const same = group.filter((one) => one.ours === one.upstream.code).length;
    return [kind, { en: 'English', other: 'other' }[expected] ?? 'neither', group.length, same, ...told].map(String);
  });
  return markdown(['States', 'Expected', 'Number', 'The same code', 'Right', 'Upstream, default `english`'], rows);
}

function stateDisagreements(states) {
  const different = differ(states, (one) => one.upstream.code).filter(({ kind }) => kind !== 'line');
  const groups = grouped(different, ({ kind, expected, upstream, ours }) =>
    [kind, expected, upstream.code, ours].join(),
  );
  const rows = groups.map((group) => {
    const [{ kind, expected, upstream, ours, state }] = group;
    const text = JSON.stringify(state).replaceAll('`', "'");
    const shown = text.length > 90 ? `${text.slice(0, 90)}...` : text;
    return [kind, expected ?? 'neither', short(upstream.code), short(ours), String(group.length), `\`${shown}\``];
  });
  return markdown(['States', 'Expected', 'Upstream', 'Here', 'Number', 'The first'], rows);
}

function markdown(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
