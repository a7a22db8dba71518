import { profileSlug } from '../../registry/index/profile.js';
import { DEFAULT_REPO, defaultRevision, type HubAccess } from '../../registry/index/repository.js';
import { bucketsIn, entriesOf, nothingPublished } from '../../registry/index/select.js';
import { findModel, MODELS } from '../../registry/models.js';
import type { IndexEntry } from '../../schemas/generated/types.js';
import { openContext, parseBuckets, printData } from '../edge.js';
import { UsageError } from '../errors.js';
import type { Context } from '../events.js';
import { type FetchOrder, type FetchReport, type FetchRow, fetchArtifacts } from '../fetch.js';
import { isHere, openSource, profileChoice, type Source } from '../fetch-source.js';
import { openHub } from '../hub.js';
import type { GlobalOptions } from '../options.js';
import { bytesText, table } from '../text.js';
import { hereToolchain, readyToolchain, type ToolchainOptions } from '../toolchain/here.js';
import type { Toolchain } from '../toolchain/toolchain.js';
import { isProbeBuilt } from '../tools/probe.js';
import { requiredTrust, type TrustOptions } from '../trust.js';

interface FetchOptions extends GlobalOptions, ToolchainOptions, TrustOptions {
  readonly revalidate?: boolean;
  readonly length?: readonly string[];
  readonly repo?: string;
  readonly revision?: string;
  readonly profile?: string;
  readonly all?: boolean;
  readonly list?: boolean;
  readonly force?: boolean;
  readonly allowRollback?: boolean;
  readonly requireSignature?: boolean;
  readonly checkpoint?: string;
}

/** `fetch`: the archives of each model are one set, registered together or not at all; exit code 1 for a refused one. */
export async function fetch(name: string | undefined, options: FetchOptions): Promise<void> {
  const context = openContext(options);
  const source = sourceOf(options, context.env);
  const hub = await openHub(context);
  if (options.list) return list(name, source, hub, options, context);
  const orders = await chooseOrders(name, source, hub, options, context);
  const reports: FetchReport[] = [];
  for (const order of orders) reports.push(await fetchArtifacts(order, hub, context));
  await printData(options.json ? JSON.stringify(reports, null, 1) : reports.map(reportText).join('\n\n'));
  if (reports.some(({ rows }) => rows.some(({ outcome }) => outcome === 'rejected'))) process.exitCode = 1;
}

/** Options first, then LAYA_APPLE_PREBUILT_REPO as the Python runtime has it, then the pinned default. */
function sourceOf(options: FetchOptions, env: Context['env']): Source {
  const repo = options.repo?.trim() || env.LAYA_APPLE_PREBUILT_REPO?.trim() || DEFAULT_REPO;
  const revision = options.revision?.trim() || defaultRevision(repo);
  return { repo, revision, allowRollback: options.allowRollback === true };
}

async function chooseOrders(
  name: string | undefined,
  source: Source,
  hub: HubAccess,
  options: FetchOptions,
  context: Context,
): Promise<FetchOrder[]> {
  const { profile, checkpoint } = options;
  if (options.all && options.length)
    throw new UsageError('USAGE', '--all and --length exclude each other', { hint: 'leave one of them out' });
  const trust = await requiredTrust(options, context);
  const common = {
    ...source,
    force: options.force === true,
    revalidate: options.revalidate === true,
    toolchain: await readyToolchain(options, context),
    ...(profile === undefined ? {} : { profile }),
    ...(trust === undefined ? {} : { trust }),
    ...(checkpoint === undefined ? {} : { checkpoint }),
  };
  if (name !== undefined) {
    const model = findModel(name);
    const buckets = options.all ? undefined : parseBuckets(options.length, model.buckets);
    return [{ ...common, model, buckets }];
  }
  if (!options.all)
    throw new UsageError('USAGE', 'no model was named', { hint: 'laya-artifacts fetch laya-tiny, or fetch --all' });
  const { index, where } = await openSource(source, hub, context);
  const choice = profileChoice(common);
  const models = MODELS.filter((model) => bucketsIn(index, model, choice).length > 0);
  if (models.length === 0) throw nothingPublished(index, where, choice);
  return models.map((model) => ({ ...common, model, buckets: undefined }));
}

/** What the index has, for every profile; nothing is downloaded but the index. */
async function list(
  name: string | undefined,
  source: Source,
  hub: HubAccess,
  options: FetchOptions,
  context: Context,
): Promise<void> {
  const models = name === undefined ? MODELS : [findModel(name)];
  const { index, place } = await openSource(source, hub, context);
  const toolchain = await knownToolchain(options, context);
  const here = (entry: IndexEntry): boolean | null => (toolchain ? isHere(entry, toolchain) : null);
  const entries = models.flatMap((model) => entriesOf(index, model)).filter((entry) => isWanted(entry, options));
  if (options.json) {
    const rows = entries.map((entry) => ({
      ...entry,
      profile: profileSlug(entry.platform),
      here: here(entry),
    }));
    const record = { repo: place.repo, commit: place.revision, generation: index.generation ?? null, artifacts: rows };
    return printData(JSON.stringify(record, null, 1));
  }
  const rows = entries.map((entry) => [
    entry.model,
    `L${entry.length}`,
    profileSlug(entry.platform),
    HERE.get(here(entry))!,
    bytesText(entry.bytes),
    entry.archive_sha256.slice(0, 12),
  ]);
  const what = `${place.repo} at ${place.revision}`;
  if (rows.length === 0) return printData(`${what} has no archives of it`);
  await printData(`${table(['MODEL', 'BUCKET', 'PROFILE', 'HERE', 'SIZE', 'SHA-256'], rows)}\n${what}`);
}

const HERE = new Map([
  [true, 'yes'],
  [false, 'no'],
  [null, '?'],
]);

/** Undefined on a Mac whose laya-probe has yet to be built: a list is not worth that. */
async function knownToolchain(options: ToolchainOptions, context: Context): Promise<Toolchain | undefined> {
  if (hereToolchain(options, context).kind === 'apple' && !(await isProbeBuilt(context))) return undefined;
  return readyToolchain(options, context);
}

function isWanted(entry: IndexEntry, { length, profile }: FetchOptions): boolean {
  const lengths = length?.flatMap((value) => value.split(',')).map((text) => text.trim());
  if (lengths && !lengths.includes(String(entry.length))) return false;
  return profile === undefined || profileSlug(entry.platform) === profile;
}

const RESULTS: Readonly<Record<FetchRow['outcome'], string>> = {
  registered: 'registered',
  'already-registered': 'there already',
  rejected: 'refused',
  withheld: 'not registered: another one was refused',
};

function reportText({ model, repo, commit, rows, seconds }: FetchReport): string {
  const lines = rows.map(({ bucket, outcome, bytes, code }) => [
    `${model} L${bucket}`,
    bytes === undefined ? '-' : bytesText(bytes),
    code ? `${RESULTS[outcome]}: ${code}` : RESULTS[outcome],
  ]);
  const signed = rows.flatMap(({ bucket, signature }) =>
    signature ? [`L${bucket} is signed by ${signature.identity} (${signature.issuer})`] : [],
  );
  const notes = [...signed, ...rows.flatMap(({ path, reason }) => (reason ? [`${path}: ${reason}`] : []))];
  const end = commit === null ? 'nothing had to be fetched' : `${repo} at ${commit}, ${seconds.toFixed(1)} s`;
  return [table(['ARTIFACT', 'SIZE', 'RESULT'], lines), ...notes, end].join('\n');
}
