import { describe, expect, it } from '@jest/globals';
import { aneRows } from '../../../pipeline/commands/warm.js';
import { openModel } from '../../../runtime/open.js';
import { appleStores } from '../../runtime/ane/apple-store.js';

const { rooted, probe } = appleStores();

describe('warm on a Mac', () => {
  it('tells what laya-probe has loaded, and leaves stamps', async () => {
    const root = await rooted([64, 96]);
    const rows = async (buckets?: readonly number[]) => {
      const model = await openModel('laya-tiny', { root, env: {}, probe: probe(), now: () => Date.now() + 60_000 });
      const found = await aneRows(model, buckets);
      await model.close();
      return found;
    };
    const both = { model: 'laya-tiny', device: 'ane', stamp: 'written' };
    expect(await rows()).toEqual([
      { ...both, bucket: 64, seconds: expect.any(Number) },
      { ...both, bucket: 96 },
    ]);
    expect(await rows([96])).toMatchObject([{ bucket: 96, stamp: 'used' }]);
  });

  it('tells why it could not', async () => {
    const model = await openModel('laya-tiny', {
      root: await rooted([64]),
      env: {},
      probe: probe({ onCpu: ['layer_norm'] }),
    });
    expect(await aneRows(model, undefined)).toMatchObject([
      { device: 'ane', problem: { name: 'BackendUnavailableError', cause: { code: 'PLACEMENT_REFUSED' } } },
    ]);
    await model.close();
  });
});
