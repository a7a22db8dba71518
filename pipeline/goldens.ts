import { join } from 'node:path';
import type { ModelSpec } from '../registry/models.js';
import { packageRoot } from '../registry/package-root.js';
import { sha256File } from '../registry/sha256.js';
import type { ModelRow } from '../runtime/forward.js';
import { checkRecord, readText } from '../schemas/door.js';
import type { Goldens as GoldensRecord } from '../schemas/generated/types.js';
import { goldens as validator } from '../schemas/generated/validators.js';
import { type JsonObject, type JsonValue, parseJson, toPlain } from '../schemas/json.js';
import { GoldensError } from './errors.js';
import type { Context } from './events.js';
import { exists } from './tools/install.js';
import { fetchPeerGoldens, hasPeerGoldens } from './tools/peer-goldens.js';

/** A request with the reference's outputs; `state` and `questions` keep the order of their text. */
export interface GoldenCase {
  readonly name: string;
  readonly state: JsonValue;
  readonly questions: JsonValue;
  readonly rows: readonly GoldenRow[];
}

/** One question's prompt and its reference: `logits` has a number per option, `actionLogits` one per action. */
export interface GoldenRow {
  readonly row: ModelRow;
  readonly logits: readonly number[];
  readonly actionLogits: readonly number[];
}

/** The references of one model. */
export interface Goldens {
  readonly path: string;
  readonly sha256: string;
  readonly reference: string;
  readonly cases: readonly GoldenCase[];
}

/** Place of goldens that are not part of the project: made from laya-apple's package, or recorded here. */
export const cachedGoldens = (model: ModelSpec, tools: string): string => join(tools, 'goldens', `${model.name}.json`);

/**
 * The file with a model's goldens: the project's own, else one in the cache; undefined when they have to be fetched.
 * Throws GoldensError GOLDENS_MISSING, which names the command that records them, when there is nowhere to get them.
 */
export async function findGoldens(model: ModelSpec, tools: string): Promise<string | undefined> {
  for (const path of [join(packageRoot(), 'goldens', `${model.name}.json`), cachedGoldens(model, tools)])
    if (await exists(path)) return path;
  if (hasPeerGoldens(model)) return undefined;
  throw new GoldensError('GOLDENS_MISSING', `there are no references for ${model.name}`, {
    where: cachedGoldens(model, tools),
    hint: `npm run record-goldens -- --model ${model.name}`,
  });
}

/** The same, fetched into the cache where that is needed. */
export async function ensureGoldens(model: ModelSpec, context: Context): Promise<string> {
  const found = await findGoldens(model, context.tools);
  if (found !== undefined) return found;
  const target = cachedGoldens(model, context.tools);
  await fetchPeerGoldens(model, target, context);
  return target;
}

/** Reads goldens and checks that they belong to the model and are complete. */
export async function readGoldens(path: string, model: ModelSpec): Promise<Goldens> {
  const parsed = parseJson(await readText(path), { maxBytes: 64 << 20 }) as JsonObject;
  const record = checkRecord<GoldensRecord>(toPlain(withoutRequests(parsed)), validator, path);
  if (record.source_weights_sha256 !== model.weightsSha256)
    throw new GoldensError('GOLDENS_MISMATCH', 'the goldens were recorded with other weights', {
      where: path,
      expected: model.weightsSha256,
      found: record.source_weights_sha256,
      hint: `npm run record-goldens -- --model ${model.name}`,
    });
  const ordered = parsed.get('cases') as JsonObject[];
  const cases = record.cases.map((one, i) => readCase(one, ordered[i]!, path));
  return { path, sha256: await sha256File(path), reference: record.reference, cases };
}

const UNREAD: readonly [string, JsonValue][] = [
  ['state', null],
  ['questions', new Map()],
  ['answers', new Map()],
];

/** The document without what callers write: their numbers may be larger than JavaScript's. */
function withoutRequests(goldens: JsonObject): JsonObject {
  const cases = goldens.get('cases');
  const bare = (one: JsonValue): JsonValue =>
    one instanceof Map ? new Map<string, JsonValue>([...one, ...UNREAD]) : one;
  const read = Array.isArray(cases) ? cases.map(bare) : null;
  return new Map<string, JsonValue>([...goldens, ['cases', read], ['invalid', null]]);
}

function readCase(record: GoldensRecord['cases'][number], ordered: JsonObject, where: string): GoldenCase {
  const { name, items, logits, action_logits: actionLogits } = record;
  const counts = new Set([items.length, logits.length, actionLogits.length]);
  const fits = items.every((item, i) => logits[i]?.length === item.markers.length);
  if (counts.size !== 1 || !fits)
    throw new GoldensError('GOLDENS_MISMATCH', `case ${name} does not have one reference a row and a logit an option`, {
      where: `${where}: ${name}`,
    });
  const rows = items.map((row, i) => ({ row, logits: logits[i]!, actionLogits: actionLogits[i]! }));
  return { name, state: ordered.get('state')!, questions: ordered.get('questions')!, rows };
}

/** Rows that fit a bucket. Throws GoldensError GOLDENS_NO_ROWS when there is none: a gate on nothing proves nothing. */
function rowsWithin(goldens: Goldens, bucket: number): GoldenRow[] {
  const rows = goldens.cases.flatMap((one) => one.rows).filter(({ row }) => row.ids.length <= bucket);
  if (rows.length > 0) return rows;
  throw new GoldensError('GOLDENS_NO_ROWS', `no golden row fits L${bucket}`, { where: goldens.path });
}

/** The row of exactly `bucket` tokens with the most options, for the layout check. */
export function exactRow(goldens: Goldens, bucket: number): GoldenRow {
  const exact = rowsWithin(goldens, bucket).filter(({ row }) => row.ids.length === bucket);
  const best = exact.sort((a, b) => b.logits.length - a.logits.length)[0];
  if (best) return best;
  throw new GoldensError('GOLDENS_NO_EXACT_ROW', `no golden row has exactly ${bucket} tokens`, {
    where: goldens.path,
    hint: 'record goldens that fill the bucket',
  });
}
