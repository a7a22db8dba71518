import { parentPort } from 'node:worker_threads';
import { DeflateChunk } from './deflate.js';

/** A chunk of input in memory that both threads see, and room for the output. */
export interface DeflateTask {
  readonly slot: number;
  readonly input: Uint8Array;
  readonly output: Uint8Array;
}

const deflate = new DeflateChunk();

parentPort?.on('message', ({ slot, input, output }: DeflateTask) => {
  parentPort?.postMessage({ slot, written: deflate.compress(input, output) });
});
