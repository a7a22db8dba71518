import { ArtifactMissingError } from '../../registry/errors.js';
import { hubFetch } from '../../registry/hub/fetch.js';
import { hubSettings, parseToken } from '../../registry/hub/settings.js';
import { listArtifacts } from '../../registry/list.js';
import { requireArtifact } from '../../registry/locate.js';
import { findModel } from '../../registry/models.js';
import type { ArtifactKey } from '../../registry/paths.js';
import { openContext, parseBuckets, printData } from '../edge.js';
import { PublishError } from '../errors.js';
import type { Context } from '../events.js';
import { openHub } from '../hub.js';
import type { GlobalOptions } from '../options.js';
import { type PublishReport, publishArtifacts } from '../publish.js';
import type { PublishRow } from '../publish-plan.js';
import type { Sign } from '../stages/sign.js';
import { bytesText, table } from '../text.js';

interface PublishOptions extends GlobalOptions {
  readonly repo: string;
  readonly revision: string;
  readonly length?: readonly string[];
  readonly create?: boolean;
  readonly private?: boolean;
  readonly tag?: string;
  readonly dryRun?: boolean;
  readonly sign?: boolean;
}

/** `publish`: everything in one commit, or nothing. */
export async function publish(names: readonly string[], options: PublishOptions): Promise<void> {
  const context = openContext(options);
  const hub = await openHub(context);
  if (!options.dryRun && parseToken(context.env.HF_TOKEN) === undefined)
    throw new PublishError('TOKEN_MISSING', 'there is no token to publish with', {
      where: 'HF_TOKEN',
      hint: 'set HF_TOKEN to a token that may write to the repository, or look first with --dry-run',
    });
  const sign = options.sign ? await openSigner(context, options.dryRun === true) : undefined;
  const order = {
    repo: options.repo,
    branch: options.revision,
    keys: await chooseKeys(names, options.length, context),
    create: options.create === true,
    isPrivate: options.private === true,
    dryRun: options.dryRun === true,
    ...(options.tag === undefined ? {} : { tag: options.tag }),
    ...(sign === undefined ? {} : { sign }),
  };
  const report = await publishArtifacts(order, hub, context);
  await printData(options.json ? JSON.stringify(report, null, 1) : reportText(report));
}

/**
 * Signs as the environment says. Throws SigningError when it does not say who signs, before anything was sent; a dry run
 * need not say it.
 */
async function openSigner({ env, signal }: Context, dryRun: boolean): Promise<Sign> {
  const { tokenSource } = await import('../../registry/signature/identity.js');
  const { signingServices, signStatement } = await import('../../registry/signature/sign.js');
  const services = signingServices(env);
  const fetch = await hubFetch(hubSettings(env).proxy);
  const open = () => tokenSource(env, fetch, signal);
  if (!dryRun) open();
  return (statement) => signStatement(statement, services, open());
}

/** What is registered of the named models and buckets. Throws ArtifactMissingError when something named is not there. */
async function chooseKeys(names: readonly string[], length: readonly string[] | undefined, { root }: Context) {
  const keys: ArtifactKey[] = [];
  const registered = (await listArtifacts(root)).flatMap(({ key }) => (key ? [key] : []));
  const models = names.length > 0 ? names.map(findModel) : [...new Set(registered.map(({ model }) => model))];
  for (const model of new Set(models)) {
    const own = registered.filter((key) => key.model === model);
    const buckets = length === undefined ? own.map(({ bucket }) => bucket) : parseBuckets(length, model.buckets);
    for (const bucket of buckets) await requireArtifact(root, { model, bucket });
    if (buckets.length === 0) await requireArtifact(root, { model, bucket: model.buckets[0]! });
    keys.push(...buckets.map((bucket) => ({ model, bucket })));
  }
  if (keys.length > 0) return keys;
  throw new ArtifactMissingError('ARTIFACT_MISSING', 'there is nothing to publish', {
    where: root,
    hint: 'npm run build-artifacts -- --model laya-tiny',
  });
}

const ACTIONS: Readonly<Record<PublishRow['action'], string>> = {
  add: 'new',
  replace: 'replaces another',
  keep: 'there already',
};

const SIGNATURES: Readonly<Record<NonNullable<PublishRow['signature']>, string>> = {
  add: 'signed',
  keep: 'signed before',
  remove: 'removed',
};

function reportText({ repo, branch, outcome, commit, rows, dangling, seconds }: PublishReport): string {
  const lines = rows.map(({ model, bucket, bytes, action, signature, path }) => [
    `${model} L${bucket}`,
    bytesText(bytes),
    ACTIONS[action],
    signature ? SIGNATURES[signature] : 'none',
    path,
  ]);
  const ends = {
    published: `${repo} at ${commit} has it, read back in size and digest; ${seconds.toFixed(1)} s`,
    unchanged: `${repo} at ${commit} had it all already`,
    planned: `nothing was done; it would be one commit on ${branch} of ${repo}, on top of ${commit ?? 'a new one'}`,
  };
  const notes = dangling.map((path) => `the index names an archive of someone else that is not there: ${path}`);
  return [table(['ARTIFACT', 'SIZE', 'ENTRY', 'SIGNATURE', 'PATH'], lines), ...notes, ends[outcome]].join('\n');
}
