/** Additive attention masks of one row: 0 where a query sees a key, -1e4 where it doesn't; (1,L,1,L), key first. */
export interface AttentionMasks {
  readonly full_mask: Float32Array;
  readonly local_mask: Float32Array;
}

const BLOCKED = -1e4;
/** Pairs of masks kept in memory; one pair is 2 MB at L 512. */
const CACHED_PAIRS = 32;

/** Masks depend only on the artifact's length and the number of real tokens, so they are made once and shared. */
export class MaskCache {
  private readonly window: number;
  private readonly pairs = new Map<string, AttentionMasks>();

  /** `window`: sliding layers see keys at most this many positions away. */
  constructor(window: number) {
    this.window = window;
  }

  /** Masks for `valid` tokens in `length` positions. The arrays are shared: don't write to them. */
  get(length: number, valid: number): AttentionMasks {
    const key = `${length}:${valid}`;
    let pair = this.pairs.get(key);
    if (!pair) {
      if (this.pairs.size >= CACHED_PAIRS) this.pairs.delete(this.pairs.keys().next().value!);
      pair = makeMasks(length, valid, this.window);
      this.pairs.set(key, pair);
    }
    return pair;
  }
}

/**
 * Padding keys are blocked for every query. The local mask also blocks keys outside the window, but padded queries see
 * every valid key: a query that saw none would have no defined softmax.
 */
function makeMasks(length: number, valid: number, window: number): AttentionMasks {
  const full_mask = new Float32Array(length * length).fill(BLOCKED, valid * length);
  const local_mask = new Float32Array(length * length).fill(BLOCKED);
  for (let key = 0; key < valid; key++) {
    const row = key * length;
    local_mask.fill(0, row + Math.max(0, key - window), row + Math.min(valid, key + window + 1));
    local_mask.fill(0, row + valid, row + length);
  }
  return { full_mask, local_mask };
}
