import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { widenHalf } from '../../../runtime/float16.js';

/** laya-tiny's body, L64, traced and converted as laya-apple 1.7.0 does it. */
export const TRACED = fileURLToPath(new URL('../../fixtures/mil/traced-L64.mlmodelc', import.meta.url));

/** One recorded row: inputs, and what the FP32 torch body answered. */
export interface TracedRow {
  readonly options: number;
  readonly inputs: Record<string, Float32Array>;
  readonly logits: readonly number[];
  readonly cls: readonly number[];
}

interface Recorded {
  readonly options: number;
  readonly inputs: Readonly<Record<string, string>>;
  readonly logits: readonly number[];
  readonly cls: readonly number[];
}

function halves(base64: string): Float32Array {
  const bytes = Uint8Array.from(Buffer.from(base64, 'base64'));
  return widenHalf(new Uint16Array(bytes.buffer));
}

/** The rows that `make_traced.py` recorded. */
export function tracedRows(): TracedRow[] {
  const file = fileURLToPath(new URL('../../fixtures/mil/traced-L64.rows.json', import.meta.url));
  const rows = JSON.parse(readFileSync(file, 'utf8')) as Recorded[];
  return rows.map((row) => ({
    ...row,
    inputs: Object.fromEntries(Object.entries(row.inputs).map(([name, data]) => [name, halves(data)])),
  }));
}
