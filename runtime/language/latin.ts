import type { Detector, Fit } from './detect.js';
import type { Segment } from './segments.js';

/** What the words of a text in Latin letters say. */
export interface LatinVerdict {
  readonly verdict: 'english' | 'other' | 'undecided';
  /** ISO 639-1 code; null when undecided, and when no language fits well enough to be named. */
  readonly language: string | null;
  /** The segment that is not English though the rest is. */
  readonly mixed: Segment | null;
}

/*
 * The figures below were chosen on the `tune` split of bench/language, and measured on the `held` one.
 * Evidence is in units of 100 points of n-gram score: an English sentence of ten words has about +15.
 */

/** Mean score that English reaches more often than not; a language without a table stays below it in all others. */
const COMMON_FIT = 45;
/** One difference counts this much at most, or a handful of n-grams would outweigh all others. */
const MOST_DIFFERENCE = 40;
/** N-grams that count; more of them say the same again. */
const MOST_NGRAMS = 20;
/** Evidence from which a text is English, and below which it is not. */
const ENGLISH = 0.5;
const NOT_ENGLISH = -1;
/** Mean score from which a language is named. */
const NAMED = 40;

/**
 * Judges segments together. English has to be likely in itself and likelier than every other language, so that a
 * language without a table is not taken for it. One segment that is clearly something else decides alone: a long
 * English part must not outvote the message that the questions are about.
 */
export function judgeLatin(segments: readonly Segment[], detect: Detector): LatinVerdict {
  const readings = segments.map((segment) => readSegment(segment, detect));
  const total = readings.reduce((sum, { evidence }) => sum + evidence, 0);
  const strongest = readings.reduce((a, b) => (b.evidence < a.evidence ? b : a));
  if (total < NOT_ENGLISH) return { verdict: 'other', language: nameOf(strongest.fit), mixed: null };
  const foreign = readings.find(isForeign);
  if (foreign) return { verdict: 'other', language: nameOf(foreign.fit), mixed: foreign.segment };
  const verdict = total >= ENGLISH ? 'english' : 'undecided';
  return { verdict, language: verdict === 'english' ? 'en' : null, mixed: null };
}

interface Reading {
  readonly segment: Segment;
  readonly fit: Fit;
  /** For English where positive, against it where negative. */
  readonly evidence: number;
}

function readSegment(segment: Segment, detect: Detector): Reading {
  const fit = detect(segment.words.join(' ').normalize('NFKC'));
  const likelier = clamp(fit.english - fit.other);
  const likely = clamp(fit.english - COMMON_FIT);
  return { segment, fit, evidence: (ngrams(segment.words) * (likelier + likely)) / 100 };
}

/** Prose of another language, in itself: one that fits, or long enough to be seen not to fit English. */
function isForeign({ segment, fit, evidence }: Reading): boolean {
  const prose = segment.words.filter((word) => /^\p{Ll}/u.test(word)).length;
  if (prose >= 7 && evidence < -6) return true;
  return prose >= 4 && evidence < -2.5 && fit.other >= 35 && fit.other - fit.english >= 15;
}

function nameOf({ language, other }: Fit): string | null {
  return other >= NAMED ? language : null;
}

function clamp(difference: number): number {
  return Math.max(-MOST_DIFFERENCE, Math.min(MOST_DIFFERENCE, difference));
}

/** About the number of n-grams the detector makes of the words: one for three letters, each word once. */
function ngrams(words: readonly string[]): number {
  const distinct = new Set(words.map((word) => word.toLowerCase()));
  let sum = 0;
  for (const word of distinct) sum += Math.max(1, Math.ceil((word.length - 1) / 3));
  return Math.min(sum, MOST_NGRAMS);
}
