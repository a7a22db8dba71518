import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DENSE_FOLDER, locateDense, readDense, verifyDense } from '../../registry/dense.js';
import { ArtifactMissingError } from '../../registry/errors.js';
import { readWhole } from '../../registry/generation.js';
import { findModel, type ModelSpec } from '../../registry/models.js';
import { verifyTree } from '../../registry/read.js';
import { sha256File } from '../../registry/sha256.js';
import { DenseRefusal, proveDense } from '../dense/prove.js';
import { openContext, parseBuckets, printData } from '../edge.js';
import type { Context } from '../events.js';
import type { GlobalOptions } from '../options.js';
import { type ParityRecord, ParityRefusal, proveParity } from '../stages/parity.js';
import { type Resolved, resolve } from '../stages/resolve.js';
import { table } from '../text.js';
import { readyToolchain, type ToolchainOptions } from '../toolchain/here.js';

interface ParityOptions extends GlobalOptions, ToolchainOptions {
  readonly length?: readonly string[];
  readonly checkpoint?: string;
}

/** One registered graph and what the gate measured on this machine now. */
interface Row {
  readonly graph: string;
  readonly record: ParityRecord;
}

/** `parity`: the gate on every registered graph of a model, bytes verified first; exit code 1 when one fails. */
export async function parity(name: string, options: ParityOptions): Promise<void> {
  const context = openContext(options);
  const model = findModel(name);
  const { checkpoint } = options;
  const order = { model, buckets: [], force: false, toolchain: await readyToolchain(options, context) };
  const resolved = await resolve({ ...order, ...(checkpoint === undefined ? {} : { checkpoint }) }, context);
  const temp = await mkdtemp(join(tmpdir(), 'laya-parity-'));
  try {
    const rows = await measureAll(resolved, parseBuckets(options.length, model.buckets), temp, context);
    if (options.length === undefined) rows.push(...(await measureDenseOf(resolved, temp, context)));
    if (rows.length === 0) throw nothing(model);
    await printData(options.json ? JSON.stringify(rows.map(flat), null, 1) : parityText(model, rows));
    if (rows.some(({ record }) => !record.passed)) process.exitCode = 1;
  } finally {
    await rm(temp, { recursive: true, force: true });
  }
}

async function measureAll(resolved: Resolved, buckets: readonly number[], temp: string, context: Context) {
  const rows: Row[] = [];
  for (const bucket of buckets) {
    const key = { model: resolved.order.model, bucket };
    try {
      const { artifact } = await readWhole(context.root, key, (one) => verifyTree(one));
      rows.push({
        graph: `L${bucket}`,
        record: await recordOf(proveParity({ resolved, bucket, model: artifact.model, temp }, context)),
      });
    } catch (error) {
      if (!(error instanceof ArtifactMissingError)) throw error;
    }
  }
  return rows;
}

async function measureDenseOf(resolved: Resolved, temp: string, context: Context): Promise<Row[]> {
  const { model } = resolved.order;
  const folder = await locateDense(context.root, model);
  if (folder === undefined) return [];
  await verifyDense(await readDense(model, folder), sha256File);
  const candidate = { resolved, folder: join(folder, DENSE_FOLDER), temp };
  return [{ graph: 'any length', record: await recordOf(proveDense(candidate, context)) }];
}

/** The gate's record, whether it passed or refused. */
async function recordOf(proof: Promise<ParityRecord>): Promise<ParityRecord> {
  return proof.catch((error: unknown) => {
    if (error instanceof ParityRefusal || error instanceof DenseRefusal) return error.parity;
    throw error;
  });
}

const flat = ({ graph, record }: Row) => ({ graph, ...record });

const nothing = ({ name }: ModelSpec): ArtifactMissingError =>
  new ArtifactMissingError('ARTIFACT_MISSING', `nothing of ${name} is registered here`, {
    hint: `npm run build-artifacts -- --model ${name}`,
  });

function parityText(model: ModelSpec, rows: readonly Row[]): string {
  const head = ['GRAPH', 'PRECISION', 'ROWS', 'BOUND', '|DP|', 'ACTION', '|DLOGIT|', 'FLIPS', 'RESULT'];
  const lines = rows.map(({ graph, record }) => [
    graph,
    record.precision,
    String(record.rows),
    String(record.tolerance),
    record.prob_max_abs.toExponential(2),
    record.action_prob_max_abs.toExponential(2),
    record.logit_max_abs.toExponential(2),
    `${record.hard_mismatches}+${record.near_tie_flips.length}`,
    record.passed ? 'passed' : `failed: ${record.failures.join('; ')}`,
  ]);
  const legend = [
    'largest differences of a probability, an action probability and a logit;',
    'decisions that differ + those that differ at a near tie',
  ];
  return [table(head, lines), '', ...legend, `${model.name} against ${rows[0]!.record.reference}`].join('\n');
}
