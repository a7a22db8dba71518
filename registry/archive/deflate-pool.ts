import { Worker } from 'node:worker_threads';
import { DeflateChunk } from './deflate.js';
import type { DeflateTask } from './deflate-worker.js';

/** Compresses chunks; the promise gives how many bytes of the output were written. */
export interface Deflater {
  /** How many chunks it makes sense to have under way. */
  readonly width: number;
  compress(task: DeflateTask): Promise<number>;
  close(): Promise<void>;
}

/** The same bytes come out with any number of threads; with none the work is done here. */
export function openDeflater(threads: number): Deflater {
  return threads > 0 ? threadedDeflater(threads) : inlineDeflater();
}

function inlineDeflater(): Deflater {
  const deflate = new DeflateChunk();
  return {
    width: 1,
    compress: async ({ input, output }) => deflate.compress(input, output),
    close: async () => undefined,
  };
}

function threadedDeflater(threads: number): Deflater {
  const url = new URL('./deflate-worker.js', import.meta.url);
  const pending = new Map<number, { resolve: (written: number) => void; reject: (error: unknown) => void }>();
  let failure: unknown;
  const workers = Array.from({ length: threads }, () => {
    const worker = new Worker(url, { execArgv: [], resourceLimits: { maxOldGenerationSizeMb: 32 } });
    worker.on('message', ({ slot, written }: { slot: number; written: number }) => {
      pending.get(slot)?.resolve(written);
      pending.delete(slot);
    });
    worker.on('error', (error) => {
      failure ??= error;
      for (const { reject } of pending.values()) reject(error);
      pending.clear();
    });
    return worker;
  });
  let turn = 0;
  return {
    width: 2 * threads,
    compress: (task) =>
      new Promise((resolve, reject) => {
        if (failure !== undefined) {
          reject(failure);
          return;
        }
        pending.set(task.slot, { resolve, reject });
        workers[turn++ % threads]!.postMessage(task);
      }),
    close: async () => {
      await Promise.all(workers.map((worker) => worker.terminate()));
    },
  };
}
