import type { JsonValue } from '../../schemas/json.js';
import { loadDetector } from './detect.js';
import { judgeLatin, type LatinVerdict } from './latin.js';
import { hasNonLatinWord, nonLatinWeight, type ScriptCounts, sumScripts } from './scripts.js';
import { type Segment, segmentsOf } from './segments.js';

/** What was found out about a state's language, with upstream's field names. */
export interface Detection {
  /** The script that decided: `latin`, `han`, `cyrillic`, ...; `other` for one without a name, `unknown` without letters. */
  readonly script: string;
  /** Shares of the letters by script, most frequent first. */
  readonly script_profile: Readonly<Record<string, number>>;
  /** ISO 639-1 code; null when none can be named, and for scripts other than Latin. */
  readonly language: string | null;
  /** True when the English checkpoint may read it: English, undecided, or no text. */
  readonly is_english: boolean;
  /** True when no language is named. */
  readonly language_undecided: boolean;
  /** Share of the letters that are Latin and not ASCII. */
  readonly diacritic_rate: number;
  /** Share of the letters that are not Latin. */
  readonly non_latin_fraction: number;
  /** Start of the line or field that is not English though the rest is. */
  readonly mixed_segment: string | null;
}

/** Share of non-Latin letters, by weight, that makes a text one of their script; less will do with enough of them. */
const NON_LATIN_SHARE = 0.25;
const NON_LATIN_LEAST_SHARE = 0.1;
const NON_LATIN_LETTERS = 10;
/** Characters of a segment that are told. */
const MOST_OF_SEGMENT = 120;
const ACCENTED = /(?!\p{ASCII})\p{Script=Latin}/gu;

/** Finds out script and language of a state: English, not English, or undecided. Loads the detector when it has to. */
export async function analyse(state: JsonValue): Promise<Detection> {
  const segments = segmentsOf(state);
  const scripts = sumScripts(segments.map((segment) => segment.scripts));
  const { script, verdict, language, mixed } = await judge(segments, scripts);
  const letters = sum(scripts.values());
  const share = (count: number): number => Math.round((count / Math.max(1, letters)) * 10_000) / 10_000;
  return {
    script,
    script_profile: Object.fromEntries([...scripts].map(([name, count]) => [name, share(count)])),
    language,
    is_english: verdict !== 'other',
    language_undecided: language === null,
    diacritic_rate: share(sum(segments.map(({ text }) => text.match(ACCENTED)?.length ?? 0))),
    non_latin_fraction: share(letters - (scripts.get('latin') ?? 0)),
    mixed_segment: mixed === null ? null : mixed.text.trim().slice(0, MOST_OF_SEGMENT),
  };
}

type Judgement = LatinVerdict & { readonly script: string };

async function judge(segments: readonly Segment[], scripts: ScriptCounts): Promise<Judgement> {
  if (scripts.size === 0) return { script: 'unknown', verdict: 'undecided', language: null, mixed: null };
  const nonLatin = nonLatinScript(segments, scripts);
  if (nonLatin) return { ...nonLatin, verdict: 'other', language: null };
  const telling = segments.filter((segment) => segment.telling);
  const judged = judgeLatin(telling.length > 0 ? telling : segments, await loadDetector());
  return { script: 'latin', ...judged };
}

/** The script other than Latin that decides, if there is one: of the whole state, or of one of its lines or fields. */
function nonLatinScript(
  segments: readonly Segment[],
  scripts: ScriptCounts,
): Pick<Judgement, 'script' | 'mixed'> | undefined {
  const [first, second] = scripts.keys();
  if (first !== 'latin') return { script: first!, mixed: null };
  if (second === undefined) return undefined;
  const withWords = segments.filter(({ text }) => hasNonLatinWord(text));
  if (withWords.length > 0 && carries(scripts)) return { script: second, mixed: null };
  const mixed = withWords.find((segment) => {
    const { weight, share } = nonLatinWeight(segment.scripts);
    return share >= 0.5 && weight >= NON_LATIN_LETTERS;
  });
  if (!mixed) return undefined;
  const script = [...sumScripts([mixed.scripts]).keys()].find((name) => name !== 'latin')!;
  return { script, mixed };
}

function carries(scripts: ScriptCounts): boolean {
  const { weight, share } = nonLatinWeight(scripts);
  return share >= NON_LATIN_SHARE || (share >= NON_LATIN_LEAST_SHARE && weight >= NON_LATIN_LETTERS);
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
