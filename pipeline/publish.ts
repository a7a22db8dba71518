import { createBranch, createRepository, createTag, makeCommit } from '../registry/hub/commit.js';
import { gitSha1 } from '../registry/hub/digest.js';
import { HubError } from '../registry/hub/errors.js';
import { fetchListing } from '../registry/hub/listing.js';
import { inParallel } from '../registry/hub/parallel.js';
import { checkRevision, headCommit } from '../registry/hub/revision.js';
import type { HubTransport } from '../registry/hub/transport.js';
import { uploadLarge } from '../registry/hub/upload.js';
import { INDEX, indexText } from '../registry/index/prebuilt.js';
import { type HubAccess, staleEntry } from '../registry/index/repository.js';
import { bundlePath } from '../registry/signature/file.js';
import { PublishError } from './errors.js';
import type { Context } from './events.js';
import {
  danglingPaths,
  makePlan,
  messageOf,
  type Plan,
  type PublishOrder,
  type PublishRow,
  readHead,
  readStated,
} from './publish-plan.js';
import { type Packed, pack } from './stages/pack.js';
import { sign } from './stages/sign.js';
import { inStaging } from './staging.js';
import { Stopwatch } from './stopwatch.js';

export interface PublishReport {
  readonly repo: string;
  readonly branch: string;
  readonly outcome: 'published' | 'unchanged' | 'planned';
  /** The commit that has it all; of a plan, the one that would be the parent, null for a new repository. */
  readonly commit: string | null;
  readonly generation: number | null;
  readonly rows: readonly PublishRow[];
  /** Entries of others whose archives the repository does not have. */
  readonly dangling: readonly string[];
  readonly seconds: number;
}

/** Others that may be faster before this gives up. */
const RACES = 10;

/**
 * Packs registered artifacts, verified on the way, and publishes archives and index as one commit on top of the branch's
 * head (docs/publishing.md), signed where the order says so. A lost race is run again on the new head; after an error
 * that leaves open what happened, the head tells. Throws PublishError, SigningError, HubError, IndexError, Artifact*Error.
 */
export async function publishArtifacts(order: PublishOrder, hub: HubAccess, context: Context): Promise<PublishReport> {
  const watch = new Stopwatch(context);
  checkRevision(order.branch);
  await readHead(order, hub);
  return inStaging('publish', watch, context, async (staging) => {
    const packed = await watch.stage(pack, { keys: order.keys, staging });
    const { outcome, plan, commit } = await publish(order, packed, hub, context);
    if (order.tag !== undefined && commit !== null && outcome !== 'planned')
      await createTag(hub.transport, order.repo, commit, order.tag);
    const { repo, branch } = order;
    const { rows, index } = plan;
    const dangling = danglingPaths(plan);
    return {
      repo,
      branch,
      outcome,
      commit,
      generation: index.generation ?? null,
      rows,
      dangling,
      seconds: watch.total(),
    };
  });
}

/** What earlier attempts brought about, by the archives' digests. */
interface Sent {
  readonly uploaded: Set<string>;
  readonly bundles: Map<string, string>;
}

interface Published {
  readonly outcome: PublishReport['outcome'];
  readonly plan: Plan;
  readonly commit: string | null;
}

async function publish(
  order: PublishOrder,
  packed: readonly Packed[],
  hub: HubAccess,
  context: Context,
): Promise<Published> {
  const sent: Sent = { uploaded: new Set(), bundles: new Map() };
  const lookUp = async (): Promise<Plan> => {
    const head = await readHead(order, hub);
    return makePlan(head, packed, context.now(), await readStated(order, head, packed, hub));
  };
  for (let race = 1, before = false; ; race++, before = true) {
    try {
      return await hub.transport.retrying(async () => {
        const plan = await lookUp();
        if (plan.isDone) return { plan, outcome: before ? 'published' : 'unchanged', commit: plan.head.commit };
        if (order.dryRun) return { plan, outcome: 'planned', commit: plan.head.commit };
        before = true;
        return commitPlan(order, plan, sent, hub, context);
      });
    } catch (error) {
      if (!(error instanceof HubError) || order.dryRun) throw error;
      if (error.code === 'HUB_CONFLICT' && race < RACES) continue;
      const plan = error.transient || error.code === 'HUB_CONFLICT' ? await lookUp().catch(() => undefined) : undefined;
      if (plan?.isDone) return { plan, outcome: 'published', commit: plan.head.commit };
      throw error.code === 'HUB_CONFLICT' ? lostRaces(order, error) : error;
    }
  }
}

async function commitPlan(
  order: PublishOrder,
  plan: Plan,
  { uploaded, bundles }: Sent,
  { transport }: HubAccess,
  context: Context,
): Promise<Published> {
  const { repo, branch } = order;
  const { head, index, uploads, unsigned, orphans: removed } = plan;
  if (order.sign) await sign({ packed: unsigned, by: order.sign, known: bundles }, context);
  const parent = head.commit ?? (await makeRepository(order, transport));
  const fresh = uploads.filter(({ sha256 }) => !uploaded.has(sha256));
  await uploadAll(order, fresh, transport, context);
  for (const { sha256 } of fresh) uploaded.add(sha256);
  const signatures = unsigned.map(({ entry, sha256 }) => ({
    target: bundlePath(entry.path),
    text: bundles.get(sha256)!,
  }));
  const texts = [...signatures, { target: INDEX, text: indexText(index) }];
  const commit = await makeCommit(transport, {
    repo,
    branch,
    parent,
    message: messageOf(plan.rows),
    large: uploads.map((one) => ({ ...one, target: one.entry.path })),
    texts,
    removed,
  });
  await readBack(transport, { repo, revision: commit }, uploads, texts);
  return { plan, outcome: 'published', commit };
}

async function uploadAll(
  { repo, branch }: PublishOrder,
  files: readonly Packed[],
  transport: HubTransport,
  { emit }: Context,
): Promise<void> {
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const sent = new Map<string, number>();
  await inParallel(files, (file) =>
    uploadLarge(transport, repo, branch, file, (bytes) => {
      sent.set(file.path, bytes);
      const done = [...sent.values()].reduce((sum, one) => sum + one);
      emit({ kind: 'progress', label: `uploading to ${repo}`, done, total });
    }),
  );
}

/** Makes what is missing; its first commit. */
async function makeRepository({ repo, branch, isPrivate }: PublishOrder, transport: HubTransport): Promise<string> {
  await createRepository(transport, repo, isPrivate);
  if (branch !== 'main') await createBranch(transport, repo, branch);
  return headCommit(transport, repo, branch);
}

/** Throws PublishError PUBLISH_UNVERIFIED unless the commit lists every file with the size and digest it was sent with. */
async function readBack(
  transport: HubTransport,
  at: { repo: string; revision: string },
  uploads: readonly Packed[],
  texts: readonly { readonly target: string; readonly text: string }[],
): Promise<void> {
  const listing = await fetchListing(transport, at);
  const wrong = uploads.flatMap(({ entry }) => {
    const found = staleEntry(entry, listing);
    return found === undefined ? [] : [`${entry.path}: ${found}`];
  });
  for (const { target, text } of texts) {
    const found = listing.find(({ path }) => path === target);
    if (found?.blobId !== gitSha1(Buffer.from(text))) wrong.push(`${target}: ${found ? 'other bytes' : 'missing'}`);
  }
  if (wrong.length === 0) return;
  throw new PublishError('PUBLISH_UNVERIFIED', 'the hub does not have what was just committed', {
    where: `${at.repo}@${at.revision}`,
    expected: 'sizes and digests as they were sent',
    found: wrong,
    hint: 'run the command again; if it stays so, tell the operator of the hub',
  });
}

function lostRaces({ repo, branch }: PublishOrder, cause: HubError): PublishError {
  return new PublishError('PUBLISH_RACE', `others moved ${branch} ${RACES} times meanwhile`, {
    where: repo,
    hint: 'run the command again when fewer jobs publish at once',
    cause,
  });
}
