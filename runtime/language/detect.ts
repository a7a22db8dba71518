import type { eld } from 'eld/extrasmall';

/** How well a text fits English and the language it fits best beside English. */
export interface Fit {
  /** Mean score of the text's n-grams in English: 0 for none known, around 80 for ordinary English. */
  readonly english: number;
  /** The same for `language`. */
  readonly other: number;
  /** ISO 639-1 code, or null when the library knows no n-gram of the text in any language but English. */
  readonly language: string | null;
}

/** Fits a text in Latin letters; reads its first 350 bytes. */
export type Detector = (text: string) => Fit;

let loading: Promise<Detector> | undefined;

/** The detector, which is the `eld` library with its smallest table; loaded on the first call (about 0.1 s). */
export function loadDetector(): Promise<Detector> {
  loading ??= import('eld/extrasmall').then((library) => (text) => fitOf(text, library.eld));
  return loading;
}

function fitOf(text: string, library: typeof eld): Fit {
  const scores = library.detect(text).getScores();
  let [language, other]: [string | null, number] = [null, 0];
  for (const [code, score] of Object.entries(scores)) {
    if (code !== 'en' && score > other) [language, other] = [code, score];
  }
  return { english: meanScore(scores.en ?? 0), other: meanScore(other), language };
}

/** The library squeezes mean scores s into s / (s + 25). */
function meanScore(squeezed: number): number {
  return (25 * squeezed) / (1 - squeezed);
}
