import type { ModelRow } from '../forward.js';

/** Most rows of one run. */
const MAX_ROWS = 32;
/** Most tokens of one run, padding included, unless one row alone has more. */
const MAX_TOKENS = 4096;

/**
 * Rows that run together, by their index: rows of similar length, so that little is padded, and no more than fit the
 * bounds. The same rows always give the same batches, and so the same last bits.
 */
export function batchesOf(rows: readonly Pick<ModelRow, 'ids'>[]): number[][] {
  const byLength = [...rows.keys()].sort((a, b) => rows[b]!.ids.length - rows[a]!.ids.length || a - b);
  const batches: number[][] = [];
  let room = 0;
  for (const index of byLength) {
    const current = batches.at(-1);
    if (current === undefined || current.length >= room) {
      batches.push([index]);
      room = Math.max(1, Math.min(MAX_ROWS, Math.floor(MAX_TOKENS / rows[index]!.ids.length)));
    } else current.push(index);
  }
  return batches;
}
