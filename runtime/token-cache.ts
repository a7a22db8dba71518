/** How much a cache keeps. */
export interface CacheLimits {
  readonly entries: number;
  /** Sum of the entries' costs: two bytes a UTF-16 unit of the text and four bytes a token. */
  readonly bytes: number;
}

interface Entry {
  readonly ids: Uint32Array;
  readonly cost: number;
}

/** Token ids by exact text; what was used least recently goes first. */
export class TokenCache {
  readonly #limits: CacheLimits;
  /** The least recently used entry is the first. */
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(limits: CacheLimits) {
    this.#limits = limits;
  }

  /** How much is kept, never more than the limits. */
  get used(): CacheLimits {
    return { entries: this.#entries.size, bytes: this.#bytes };
  }

  /** A copy of the text's ids, or undefined when they aren't kept. The text counts as used. */
  get(text: string): number[] | undefined {
    const entry = this.#entries.get(text);
    if (entry === undefined) return undefined;
    this.#entries.delete(text);
    this.#entries.set(text, entry);
    return Array.from(entry.ids);
  }

  /** Keeps a copy of the ids, each below 2^32. A text that exceeds the limits alone is not kept, and displaces none. */
  set(text: string, ids: readonly number[]): void {
    this.#remove(text);
    const cost = 2 * text.length + 4 * ids.length;
    if (this.#limits.entries < 1 || cost > this.#limits.bytes) return;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size < this.#limits.entries && this.#bytes + cost <= this.#limits.bytes) break;
      this.#remove(oldest);
    }
    this.#entries.set(detached(text), { ids: Uint32Array.from(ids), cost });
    this.#bytes += cost;
  }

  #remove(text: string): void {
    this.#bytes -= this.#entries.get(text)?.cost ?? 0;
    this.#entries.delete(text);
  }
}

/** The same text in memory of its own: a part of a request's body would keep all of the body alive. */
function detached(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}
