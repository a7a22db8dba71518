import type { JsonValue } from '../../schemas/json.js';
import { countScripts, type ScriptCounts } from './scripts.js';

/** A line, or a piece of a long line, of one of a state's texts. */
export interface Segment {
  readonly text: string;
  readonly scripts: ScriptCounts;
  /** Its words in Latin letters, without addresses, identifiers, acronyms and, where enough are left, names. */
  readonly words: readonly string[];
  /** True for prose. Code, names and single words tell little: they count only when a state has nothing else. */
  readonly telling: boolean;
}

/** Characters of a state that are read: more than any checkpoint's token budget holds of a text in Latin letters. */
const MOST_CHARACTERS = 6000;
/** What the detector reads at once, with room for letters of two bytes. */
const MOST_A_SEGMENT = 280;

/**
 * Splits a state into the pieces whose language is judged. Values are read, keys are not: they are field names, mostly
 * English. Of a conversation the end is read, of anything else the start, as the prompt keeps them.
 */
export function segmentsOf(state: JsonValue): Segment[] {
  const segments: Segment[] = [];
  for (const text of textsOf(state)) {
    for (const line of text.split(/[\r\n]+/)) {
      for (const piece of pieces(line)) {
        if (/\S/.test(piece)) segments.push(segmentOf(piece));
      }
    }
  }
  return segments;
}

function textsOf(state: JsonValue): string[] {
  const fromEnd = Array.isArray(state);
  const texts: string[] = [];
  let room = MOST_CHARACTERS;
  const open: JsonValue[] = [state];
  while (open.length > 0 && room > 0) {
    const value = open.pop()!;
    if (typeof value === 'string') {
      texts.push(fromEnd ? value.slice(-room) : value.slice(0, room));
      room -= value.length;
    } else if (Array.isArray(value) || value instanceof Map) {
      const members = [...value.values()];
      for (const member of fromEnd ? members : members.reverse()) open.push(member);
    }
  }
  return fromEnd ? texts.reverse() : texts;
}

function* pieces(line: string): Generator<string> {
  let start = 0;
  while (line.length - start > MOST_A_SEGMENT) {
    const space = line.lastIndexOf(' ', start + MOST_A_SEGMENT);
    const end = space > start ? space : start + MOST_A_SEGMENT;
    yield line.slice(start, end);
    start = end;
  }
  yield line.slice(start);
}

const CODE = /[{}]|;\s*$|=|\w\(/;

function segmentOf(text: string): Segment {
  const shouted = isShouted(text);
  const words = plainWords(text, shouted);
  const isProse = words.length > 1 && (shouted || words.some((word) => /^\p{Ll}/u.test(word)));
  return { text, scripts: countScripts(text), words, telling: isProse && !CODE.test(text) };
}

/** All in capitals, and more than acronyms. */
function isShouted(text: string): boolean {
  return !/\p{Ll}/u.test(text) && /\p{Lu}{5}/u.test(text);
}

/** Addresses, paths and code: signs between letters that prose does not have there. */
const ADDRESS = /:\/\/|[\p{L}\p{N}_-][.@\\_=][\p{L}\p{N}_]|\w\/\w+\/\w|`/u;
/** A word of prose, with quotes or punctuation around it; hyphens and apostrophes within. */
const WORD = /^[^\p{L}\p{N}@#_$<-]*(\p{Script=Latin}[\p{Script=Latin}\p{M}'’ʻʼ‘-]*)[^\p{L}\p{N}@_]*$/u;
/** Names of code: a capital within, as in `readFile` and `TypeError`. */
const CAMEL_CASE = /\p{Ll}\p{Lu}/u;
const ACRONYM = /^\p{Lu}{2,4}$/u;
const CAPITAL = /^\p{Lu}/u;
/** So many words without a capital are enough to judge a text by. */
const ENOUGH_WORDS = 3;

function plainWords(text: string, shouted: boolean): string[] {
  const words: string[] = [];
  for (const token of text.split(/\s+/u)) {
    if (ADDRESS.test(token)) continue;
    for (const part of token.split(/[,;:/–—]/u)) {
      const word = WORD.exec(part)?.[1];
      if (word === undefined || CAMEL_CASE.test(word)) continue;
      if (shouted || !ACRONYM.test(word)) words.push(word);
    }
  }
  const unnamed = words.filter((word, index) => index === 0 || !CAPITAL.test(word));
  return unnamed.length >= ENOUGH_WORDS ? unnamed : words;
}
