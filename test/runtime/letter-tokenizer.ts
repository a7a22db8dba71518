import type { PromptTokenizer } from '../../runtime/tokenizer.js';

/** A tokenizer with a token a UTF-16 unit, so that budgets can be counted in letters. Its mask token is `<m>`. */
export class LetterTokenizer implements PromptTokenizer {
  readonly cls = { text: '<c>', id: 1 };
  readonly sep = { text: '<s>', id: 2 };
  readonly pad = { text: '<p>', id: 3 };
  readonly mask = { text: '<m>', id: 4 };
  readonly encoded: string[] = [];

  async encode(text: string): Promise<number[]> {
    this.encoded.push(text);
    return Array.from({ length: text.length }, (_, at) => 1000 + text.charCodeAt(at));
  }

  /** The row as text: special tokens by their letter in brackets. */
  show(ids: readonly number[]): string {
    const names = ['', '[C]', '[S]', '[P]', '[M]'];
    return ids.map((id) => names[id] ?? String.fromCharCode(id - 1000)).join('');
  }
}
