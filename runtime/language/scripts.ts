/** Letters of a text by script, most frequent first; `latin`, a name of `SCRIPTS`, or `other`. */
export type ScriptCounts = ReadonlyMap<string, number>;

/** Scripts with a name of their own, as upstream names them; letters of any other count as `other`. */
const SCRIPTS: readonly (readonly [string, RegExp])[] = [
  ['cyrillic', /\p{scx=Cyrl}/u],
  ['arabic', /\p{scx=Arab}/u],
  ['han', /\p{scx=Hani}/u],
  ['kana', /[\p{scx=Hira}\p{scx=Kana}]/u],
  ['hangul', /\p{scx=Hang}/u],
  ['devanagari', /\p{scx=Deva}/u],
  ['greek', /\p{scx=Grek}/u],
  ['hebrew', /\p{scx=Hebr}/u],
  ['armenian', /\p{scx=Armn}/u],
  ['georgian', /\p{scx=Geor}/u],
  ['bengali', /\p{scx=Beng}/u],
  ['gurmukhi', /\p{scx=Guru}/u],
  ['gujarati', /\p{scx=Gujr}/u],
  ['oriya', /\p{scx=Orya}/u],
  ['tamil', /\p{scx=Taml}/u],
  ['telugu', /\p{scx=Telu}/u],
  ['kannada', /\p{scx=Knda}/u],
  ['malayalam', /\p{scx=Mlym}/u],
  ['sinhala', /\p{scx=Sinh}/u],
  ['thai', /\p{scx=Thai}/u],
  ['lao', /\p{scx=Laoo}/u],
  ['tibetan', /\p{scx=Tibt}/u],
  ['myanmar', /\p{scx=Mymr}/u],
  ['ethiopic', /\p{scx=Ethi}/u],
  ['khmer', /\p{scx=Khmr}/u],
];

/**
 * A letter, but no modifier such as ʼ, which many scripts share. A code point that this Node's Unicode doesn't know yet
 * counts as one, or text in a newer script would be no text at all; not so among the pictographs, where new ones come
 * every year.
 */
const LETTER = /(?![\u02b0-\u02ff\u{1f000}-\u{1fbff}\p{Noncharacter_Code_Point}])[\p{L}\p{Cn}]/gu;
const LATIN = /\p{Script=Latin}/u;
/** Signs that Unicode calls letters though they are of no script, such as µ; but not letters in mathematical type. */
const SIGN = /(?![\u{1d400}-\u{1d7ff}])[\p{Script=Common}\p{Script=Inherited}]/u;

/** Counts the letters of a text by script. */
export function countScripts(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  let last = SCRIPTS[0]!;
  for (const [letter] of text.matchAll(LETTER)) {
    let name = 'latin';
    if (!LATIN.test(letter)) {
      if (!last[1].test(letter)) last = SCRIPTS.find(([, pattern]) => pattern.test(letter)) ?? last;
      name = last[1].test(letter) ? last[0] : 'other';
      if (name === 'other' && SIGN.test(letter)) continue;
    }
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

/** The sum of several counts, most frequent first; of equals, Latin comes last. */
export function sumScripts(all: Iterable<ScriptCounts>): ScriptCounts {
  const sum = new Map<string, number>();
  for (const counts of all) {
    for (const [name, count] of counts) sum.set(name, (sum.get(name) ?? 0) + count);
  }
  return new Map([...sum].sort(([a, m], [b, n]) => n - m || Number(a === 'latin') - Number(b === 'latin')));
}

/** Scripts whose letters say about twice as much as one of an alphabet. */
const DENSE: ReadonlySet<string> = new Set(['han', 'kana', 'hangul']);

/** Weight of the letters that are not Latin, and their share of all: dense scripts count double. */
export function nonLatinWeight(counts: ScriptCounts): { weight: number; share: number } {
  let weight = 0;
  for (const [name, count] of counts) {
    if (name !== 'latin') weight += DENSE.has(name) ? 2 * count : count;
  }
  const all = weight + (counts.get('latin') ?? 0);
  return { weight, share: all === 0 ? 0 : weight / all };
}

const NON_LATIN_RUN = /(?:(?!\p{Script=Latin})\p{L}[\p{M}\u200c\u200d]*)+/gu;

/**
 * True when the text has a word that is not Latin: two letters or more that don't start with a capital. English prose
 * carries Greek symbols and foreign names without being a text in their script.
 */
export function hasNonLatinWord(text: string): boolean {
  for (const [run] of text.matchAll(NON_LATIN_RUN)) {
    if (!/^\p{Lu}/u.test(run) && /\p{L}\p{M}*\p{L}/u.test(run)) return true;
  }
  return false;
}
