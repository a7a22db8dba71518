import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { batchesOf } from '../../../runtime/dense/batches.js';

const rowsOf = (lengths: readonly number[]) => lengths.map((length) => ({ ids: new Array<number>(length).fill(1) }));

describe('batches of rows', () => {
  it('hold every row once, within the bounds, whatever the lengths', () => {
    const lengths = fc.array(fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 9000 })), {
      maxLength: 90,
    });
    fc.assert(
      fc.property(lengths, (all) => {
        const batches = batchesOf(rowsOf(all));
        expect(batches.flat().sort((a, b) => a - b)).toEqual([...all.keys()]);
        for (const batch of batches) {
          const longest = Math.max(...batch.map((index) => all[index]!));
          expect(batch.length === 1 || (batch.length <= 32 && batch.length * longest <= 4096)).toBe(true);
        }
      }),
    );
  });

  it('put rows of similar length together', () => {
    const all = [...new Array<number>(31).fill(10), 4000, 20];
    const [first, second] = batchesOf(rowsOf(all));
    expect(first).toEqual([31]);
    expect(second).toHaveLength(32);
    expect(batchesOf([])).toEqual([]);
  });
});
