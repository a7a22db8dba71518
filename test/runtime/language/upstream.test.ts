import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { type Measured, measure, tables } from '../../../bench/language/measure.mjs';
import { decideLanguage } from '../../../runtime/language/route.js';
import { fromPlain } from '../../../schemas/json.js';

let measured: Measured;

beforeAll(async () => {
  measured = await measure((state) => decideLanguage(fromPlain(state)));
}, 120_000);

const isMultilingual = (code: string) => code === 'language_not_english' || code === 'language_non_latin_script';

describe('routing beside upstream’s', () => {
  it('measures lines of at least forty languages, and a few hundred states', () => {
    expect(new Set(measured.lines.map(({ language }) => language)).size).toBeGreaterThanOrEqual(40);
    const chat = measured.lines.filter(({ source }) => source === 'chat');
    expect(new Set(chat.map(({ language }) => language)).size).toBeGreaterThanOrEqual(40);
    expect(measured.states.length).toBeGreaterThan(300);
  });

  it('is right at least as often, for English and for others, whatever default upstream has', () => {
    for (const kind of ['English', 'other, Latin script', 'other script']) {
      const lines = measured.lines.filter((line) => line.kind === kind);
      const right = (code: 'ours' | 'upstream') =>
        lines.filter((line) => isMultilingual(line[code]) !== (line.language === 'en')).length;
      const rightWithMultilingual = lines.filter(
        (line) => (line.upstream === 'language_english') === (line.language === 'en'),
      ).length;
      expect(right('ours')).toBeGreaterThanOrEqual(Math.max(right('upstream'), rightWithMultilingual));
    }
  });

  it('decides the same on what upstream takes for English, and on scripts other than Latin', () => {
    const firm = measured.lines.filter(
      ({ kind, upstream }) => kind === 'other script' || (kind === 'English' && upstream === 'language_english'),
    );
    expect(firm.length).toBeGreaterThan(1400);
    expect(firm.filter(({ ours, upstream }) => ours !== upstream)).toEqual([]);
  });

  it('decides the same on states in English, in other scripts and without text', () => {
    const firm = measured.states.filter(({ expected, upstream }) => {
      return (expected === 'en' && upstream.code === 'language_english') || /non_latin|no_text/.test(upstream.code);
    });
    expect(firm.length).toBeGreaterThan(150);
    expect(firm.filter(({ ours, upstream }) => ours !== upstream.code)).toEqual([]);
  });

  it('is what the document says', () => {
    const document = readFileSync(new URL('../../../docs/language-routing.md', import.meta.url), 'utf8');
    for (const table of tables(measured)) expect(document).toContain(table);
  });
});
