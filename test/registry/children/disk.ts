// What works on a full disk, and after: node disk.mjs ROOT [fake]. Fills the disk of the root; with `fake` every call
// that needs space fails instead. Prints one line of JSON.
import { rmSync, writeFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commitArtifact } from '../../../registry/commit.js';
import { readWhole } from '../../../registry/generation.js';
import { listArtifacts } from '../../../registry/list.js';
import { lockTarget } from '../../../registry/lock.js';
import { artifactFolder, COMPILED, stagingFolder } from '../../../registry/paths.js';
import { executePrune, planPrune } from '../../../registry/prune.js';
import { findProblem, moveToQuarantine } from '../../../registry/quarantine.js';
import { openStaging, storeAccess } from '../../../registry/staging.js';
import { verifyStamped } from '../../../registry/stamps.js';
import { verifyListing } from '../../../registry/verify-listing.js';
import { LayaError } from '../../../schemas/errors.js';
import { FILES, KEY, writeArtifact } from '../artifact.js';
import { watchCalls } from '../faulty-calls.js';
import { served } from '../operations.js';

const [root, fake] = process.argv.slice(2) as [string, string | undefined];
const now = (): Date => new Date();
const later = { superseded: false, quarantined: false, now: new Date(Date.now() + 86_400_000) };
const NEEDS_SPACE = new Set(['mkdir', 'writeFile', 'link']);
const ballast = join(root, 'ballast');
let isFull = false;
let unfake: () => void = () => undefined;

/** Leaves no byte free. */
async function fill(): Promise<void> {
  isFull = true;
  if (fake) {
    unfake = await watchCalls((call) => {
      if (isFull && NEEDS_SPACE.has(call)) throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    });
    return;
  }
  for (let size = 1 << 16; size >= 1; size >>= 1)
    for (let left = true; left; ) {
      try {
        writeFileSync(ballast, Buffer.alloc(size), { flag: 'a' });
      } catch {
        left = false;
      }
    }
}

async function codeOf(step: () => Promise<unknown>): Promise<string> {
  try {
    await step();
    return 'done';
  } catch (error) {
    return error instanceof LayaError ? error.code : `${(error as NodeJS.ErrnoException).code}`;
  }
}

async function build(name: string): Promise<string> {
  const staging = await openStaging(root, KEY, now());
  const staged = join(staging.path, 'buckets', 'L64');
  try {
    return await storeAccess(root, async () => {
      await writeArtifact(staged, { ...FILES, 'model.mil': name });
      return commitArtifact(root, KEY, staged, { replace: true, now });
    });
  } finally {
    await staging.remove();
  }
}

await build('old');
await mkdir(join(stagingFolder(root), 'left'), { recursive: true });
await writeFile(join(stagingFolder(root), 'left', 'large'), Buffer.alloc(300_000));
await fill();
const signal = new AbortController().signal;
const found: Record<string, unknown> = {
  build: await codeOf(() => build('new')),
  lock: await codeOf(() => storeAccess(root, async () => (await lockTarget(root, KEY, { signal, now })).release())),
  load: (await readWhole(root, KEY, (artifact) => verifyStamped(root, artifact, () => Date.now() + 60_000))).value
    .stamp,
  verify: (await verifyListing(root, (await listArtifacts(root))[0]!)).problem?.code ?? 'right',
  served: await served(root),
};
const { entries } = await planPrune(root, later);
const outcomes = await executePrune(
  root,
  entries.map(({ path }) => path),
  later,
);
found.pruned = outcomes.map(({ path, outcome }) => `${path} ${outcome}`);
rmSync(ballast, { force: true });
isFull = false;
unfake();
found.after = await build('new');
found.servedAfter = await served(root);

await writeFile(join(artifactFolder(root, KEY), COMPILED, 'model.mil'), 'changed');
await fill();
const problem = await findProblem(root, KEY);
found.quarantine = await codeOf(() =>
  storeAccess(root, () => moveToQuarantine(root, KEY, { reason: problem!.message, now: now() })),
);
rmSync(ballast, { force: true });
isFull = false;
unfake();
found.last = await build('newer');
found.servedLast = await served(root);
process.stdout.write(`${JSON.stringify(found)}\n`);
