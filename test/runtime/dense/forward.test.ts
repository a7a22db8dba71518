import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { emitDense } from '../../../pipeline/dense/emit.js';
import { readCheckpoint } from '../../../runtime/checkpoint.js';
import { forwardBatches } from '../../../runtime/dense/forward.js';
import { DenseSession } from '../../../runtime/dense/session.js';
import type { ModelRow } from '../../../runtime/forward.js';
import { HostWeights } from '../../../runtime/host.js';
import { codeOf } from '../../workspace.js';

const folder = mkdtempSync(join(tmpdir(), 'laya-test-'));
let [host, session] = [undefined as unknown as HostWeights, undefined as unknown as DenseSession];
const model = () => ({ host, session, maxTokens: 256, vocab: 4096 });

beforeAll(async () => {
  const checkpoint = await readCheckpoint('models/laya-tiny');
  await emitDense(checkpoint, folder);
  host = await HostWeights.open(checkpoint);
  session = await DenseSession.open(join(folder, 'model.onnx'), { threads: 1 });
});
afterAll(async () => {
  await session.release();
  await host.close();
  rmSync(folder, { recursive: true, force: true });
});

const row = (length: number, options: number, qtype: 0 | 1 | 2 = 0): ModelRow => ({
  ids: Array.from({ length }, (_, i) => 5 + ((i * 37) % 900)),
  markers: Array.from({ length: options }, (_, i) => 1 + i),
  qtype,
});

describe('rows through the any-length graph', () => {
  it('give the same alone and in a batch with longer rows and more options, in their order', async () => {
    const rows = [row(12, 2), row(200, 40, 1), row(3, 1, 2), row(64, 5)];
    const together = await forwardBatches(model(), rows);
    for (const [i, one] of rows.entries()) {
      const [alone] = await forwardBatches(model(), [one]);
      expect(together[i]!.logits).toHaveLength(one.markers.length);
      const numbers = [...together[i]!.logits, ...together[i]!.actionLogits];
      for (const [k, value] of [...alone!.logits, ...alone!.actionLogits].entries())
        expect(Math.abs(value - numbers[k]!)).toBeLessThan(1e-4);
    }
  });

  it('stop between two batches', async () => {
    const rows = Array.from({ length: 40 }, () => row(3, 1));
    let batches = 0;
    const between = () => {
      if (++batches === 2) throw new Error('stopped');
    };
    await expect(forwardBatches(model(), rows, between)).rejects.toThrow('stopped');
    expect(batches).toBe(2);
  });

  it('are refused when they are none of this model’s', async () => {
    const codes = [
      { ...row(4, 1), ids: [1, 2, 4096, 3] },
      { ...row(4, 1), ids: [1, -1, 2] },
      row(257, 1),
      row(0, 0),
      row(4, 0),
      { ...row(4, 1), markers: [4] },
      { ...row(4, 1), qtype: 3 as 2 },
    ].map((bad) => codeOf(() => forwardBatches(model(), [row(4, 1), bad])));
    expect(await Promise.all(codes)).toEqual([
      ...['CHECKPOINT_TOKENIZER', 'CHECKPOINT_TOKENIZER', 'QUESTION_INVALID', 'QUESTION_INVALID'],
      ...['QUESTION_INVALID', 'QUESTION_INVALID', 'QUESTION_INVALID'],
    ]);
  });
});

describe('a session of the any-length graph', () => {
  // S10
  it('says what is wrong with a file, a number of threads, or a call after its end', async () => {
    const path = join(folder, 'model.onnx');
    expect(await codeOf(() => DenseSession.open(join(folder, 'model.onnx.data')))).toBe('MIL_RUN');
    for (const threads of [0, -1, 1.5, 5000, Number.NaN])
      expect(await codeOf(() => DenseSession.open(path, { threads }))).toBe('MIL_INPUT');
    const ended = await DenseSession.open(path, { threads: 1 });
    await ended.release();
    await ended.release();
    expect(await codeOf(() => ended.run([row(4, 1)]))).toBe('CLOSED');
  });
});
