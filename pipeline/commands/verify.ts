import type { AuditRow } from '../../registry/audit.js';
import { type DenseListing, type DenseVerification, listDense, verifyDenseListing } from '../../registry/dense-list.js';
import { ArtifactMissingError } from '../../registry/errors.js';
import { evidenceKind } from '../../registry/evidence.js';
import { type Listing, listArtifacts } from '../../registry/list.js';
import { findModel, MODELS } from '../../registry/models.js';
import type { HashMemo } from '../../registry/tree.js';
import { filesBelow, uniqueBytes } from '../../registry/usage.js';
import { type Verification, verifyListing } from '../../registry/verify-listing.js';
import type { DeepCheck } from '../deep.js';
import { openContext, parseBuckets, printData } from '../edge.js';
import type { Context } from '../events.js';
import type { GlobalOptions } from '../options.js';
import { profileText } from '../profile.js';
import { bytesText, safeText, table } from '../text.js';
import type { Toolchain } from '../toolchain/toolchain.js';

interface VerifyOptions extends GlobalOptions {
  readonly length?: readonly string[];
  readonly all?: boolean;
  readonly deep?: boolean;
}

/** What was found out; `unique` is the bytes of the right artifacts with shared files counted once. */
interface Findings {
  readonly results: readonly Verification[];
  readonly graphs: readonly DenseVerification[];
  readonly others: readonly AuditRow[];
  readonly unique: number;
}

/**
 * `verify`: reads every byte, reports each artifact and any-length graph, changes nothing; exit code 1 when one fails.
 * With `--deep` the gates of this machine run again on those that are right.
 */
export async function verify(name: string | undefined, options: VerifyOptions): Promise<void> {
  const context = openContext(options);
  const chosen = choose(await listArtifacts(context.root), name, options.length);
  const graphs = options.length ? [] : await chooseDense(context.root, name);
  if (chosen.length + graphs.length === 0 && !options.all)
    throw new ArtifactMissingError('ARTIFACT_MISSING', 'there is nothing to verify', {
      where: context.root,
      hint: `npm run build-artifacts -- --model ${name === undefined ? 'laya-tiny' : findModel(name).name}`,
    });
  const deep = options.deep ? await openDeepCheck(context) : undefined;
  const results = await verifyAll(chosen, deep, context);
  const right = results.flatMap(({ artifact, digest }) => (artifact && digest ? [artifact] : []));
  const unique = uniqueBytes(right.flatMap(({ model }) => filesBelow(model)));
  const verified = await verifyGraphs(graphs, deep, context);
  const findings = { results, graphs: verified, others: options.all ? await auditRows(context) : [], unique };
  await printData(options.json ? JSON.stringify(records(findings), null, 1) : text(findings));
  if ([...results, ...verified, ...findings.others].some(isFailure)) process.exitCode = 1;
}

type Deep = DeepCheck | undefined;

async function verifyAll(chosen: readonly Listing[], deep: Deep, context: Context): Promise<Verification[]> {
  const memo: HashMemo = new Map();
  const results: Verification[] = [];
  for (const [done, listing] of chosen.entries()) {
    context.signal.throwIfAborted();
    context.emit({ kind: 'progress', label: 'verifying', done, total: chosen.length });
    const result = await verifyListing(context.root, listing, memo);
    const problem = result.artifact && !result.problem ? await deep?.problemOf(result.artifact) : undefined;
    results.push(problem ? { ...result, problem } : result);
  }
  return results;
}

async function verifyGraphs(graphs: readonly DenseListing[], deep: Deep, { signal }: Context) {
  const results: DenseVerification[] = [];
  for (const graph of graphs) {
    signal.throwIfAborted();
    const result = await verifyDenseListing(graph);
    const problem = result.dense && !result.problem ? await deep?.problemOfDense(result.dense) : undefined;
    results.push(problem ? { ...result, problem } : result);
  }
  return results;
}

/** What is no artifact; it needs most of the store's code, which the other verifications do without. */
async function auditRows({ root, now }: Context): Promise<AuditRow[]> {
  const { auditStore } = await import('../../registry/audit.js');
  return auditStore(root, now());
}

/** The gates bring the executor with them: loaded only when they are asked for. */
async function openDeepCheck(context: Context) {
  const [{ DeepCheck }, { hereToolchain, readyToolchain }] = await Promise.all([
    import('../deep.js'),
    import('../toolchain/here.js'),
  ]);
  const portable = hereToolchain({ toolchain: 'portable' }, context);
  let own: Promise<Toolchain> | undefined;
  const ready = (): Promise<Toolchain> => {
    own ??= readyToolchain({}, context);
    return own;
  };
  return new DeepCheck(async (kind) => (kind === 'portable' ? portable : ready()), context);
}

function choose(listings: readonly Listing[], name: string | undefined, lengths: readonly string[] | undefined) {
  const model = name === undefined ? undefined : findModel(name);
  const offered = model?.buckets ?? [...new Set(MODELS.flatMap(({ buckets }) => buckets))].sort((a, b) => a - b);
  const buckets = parseBuckets(lengths, offered);
  return listings.filter(({ path, key }) => {
    if (model && !path.startsWith(`${model.name}/`)) return false;
    return lengths === undefined || (key !== undefined && buckets.includes(key.bucket));
  });
}

/** A length names buckets; any-length graphs have none. */
async function chooseDense(root: string, name: string | undefined): Promise<DenseListing[]> {
  const model = name === undefined ? undefined : findModel(name).name;
  return (await listDense(root)).filter((row) => model === undefined || row.model === model);
}

/** An install in progress is no artifact yet. */
const isFailure = ({ problem }: Verification | DenseVerification | AuditRow): boolean =>
  problem !== undefined && problem.code !== 'INSTALLING';

function text({ results, graphs, others, unique }: Findings): string {
  const rows = results.map(({ path, digest, problem, manifest }) => [
    path,
    problem ? problem.code : 'ok',
    manifest ? profileText(manifest) : '-',
    digest ? bytesText(digest.bytes) : '-',
  ]);
  for (const { path, digest, problem } of graphs)
    rows.push([path, problem ? problem.code : 'ok', 'portable', digest ? bytesText(digest.bytes) : '-']);
  rows.push(...others.map(({ path, problem, kind }) => [path, problem ? problem.code : kind, '-', '-']));
  const problems = [...results, ...graphs, ...others].flatMap(({ path, problem }) =>
    problem ? [`${path}: ${problem.message}`] : [],
  );
  const notes = others.flatMap(({ path, problem, note }) => (problem ? [] : [`${path}: ${note}`]));
  const bytes = results.reduce((sum, { digest }) => sum + (digest?.bytes ?? 0), 0);
  const right = (all: readonly (Verification | DenseVerification)[]): string =>
    `${all.filter(({ digest, problem }) => digest && !problem).length} of ${all.length}`;
  const dense = graphs.length > 0 ? `; ${right(graphs)} any-length graphs` : '';
  const summary = `${right(results)} artifacts are right, ${bytesText(bytes)} (${bytesText(unique)} on disk)${dense}`;
  return [
    table(['ARTIFACT', 'RESULT', 'PROVEN ON', 'SIZE'], rows),
    ...[...problems, ...notes, summary].map(safeText),
  ].join('\n');
}

function records({ results, graphs, others }: Findings) {
  const artifacts = results.map(({ path, digest, problem, artifact, manifest }) => ({
    kind: 'artifact',
    path,
    ok: problem === undefined,
    evidence: manifest ? evidenceKind(manifest) : null,
    platform: manifest?.platform ?? null,
    artifact_sha256: digest?.v1 ?? null,
    tree_v2: digest?.v2 ?? null,
    bytes: digest?.bytes ?? null,
    unique_bytes: artifact && digest ? uniqueBytes(filesBelow(artifact.model)) : null,
    problem: problem?.toJSON() ?? null,
  }));
  const dense = graphs.map(({ path, digest, problem }) => ({
    kind: 'any-length',
    path,
    ok: problem === undefined,
    evidence: 'portable',
    artifact_sha256: digest?.v1 ?? null,
    tree_v2: digest?.v2 ?? null,
    bytes: digest?.bytes ?? null,
    problem: problem?.toJSON() ?? null,
  }));
  const rest = others.map(({ kind, path, note, problem }) => {
    return { kind, path, ok: problem === undefined, note, problem: problem?.toJSON() ?? null };
  });
  return [...artifacts, ...dense, ...rest];
}
