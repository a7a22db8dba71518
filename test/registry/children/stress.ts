// One of many processes that work on one artifact: node stress.mjs ROOT ROLE LIMIT, where LIMIT is a number of rounds or
// `<seconds>s`. Prints a line of JSON for everything that must not happen, and ends with the number of rounds.
import { mkdir, rename, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { writeArchive } from '../../../registry/archive/write.js';
import { commitArtifact } from '../../../registry/commit.js';
import { StoreError } from '../../../registry/errors.js';
import { readWhole } from '../../../registry/generation.js';
import { listArtifacts } from '../../../registry/list.js';
import { lockTarget } from '../../../registry/lock.js';
import { artifactFolder, COMPILED, stagingFolder } from '../../../registry/paths.js';
import { executePrune, planPrune } from '../../../registry/prune.js';
import { findProblem, moveToQuarantine } from '../../../registry/quarantine.js';
import { verifyTree } from '../../../registry/read.js';
import { shareFiles } from '../../../registry/sharing.js';
import { openStaging } from '../../../registry/staging.js';
import { verifyStamped } from '../../../registry/stamps.js';
import { type StoreSteps, storeSteps } from '../../../registry/steps.js';
import { hashTree } from '../../../registry/tree.js';
import { verifyListing } from '../../../registry/verify-listing.js';
import { writeTree } from '../../files.js';
import { importInto } from '../archive-operations.js';
import { FILES, KEY, writeArtifact } from '../artifact.js';
import { stepsWith } from '../faulty-steps.js';

const [root, role, limit] = process.argv.slice(2) as [string, string, string];
const signal = new AbortController().signal;
const now = (): Date => new Date();
const WEIGHTS = 'w'.repeat(80 << 10);
const ARCHIVE = join(root, 'import.tar.gz');
/** Above every process id, so that it is the id of none. */
const DEAD = 4_194_305;

async function build(round: number, replace: boolean, steps: Partial<StoreSteps> = {}): Promise<void> {
  const staging = await openStaging(root, KEY, now());
  const staged = join(staging.path, 'buckets', 'L64');
  await writeArtifact(staged, { ...FILES, 'model.mil': `${process.pid} ${round}`, 'weights/weight.bin': WEIGHTS });
  if (round % 2 === 0) await shareFiles(root, KEY, join(staged, COMPILED), await hashTree(join(staged, COMPILED)));
  await commitArtifact(root, KEY, staged, { replace, now, steps });
  await staging.remove();
}

async function locked(work: () => Promise<void>): Promise<void> {
  const lock = await lockTarget(root, KEY, { signal, now });
  try {
    await work();
  } finally {
    await lock.release();
  }
}

/** Ends this process around one of the steps of a replacement, another one in each round. */
function fatal(round: number): StoreSteps {
  return stepsWith(storeSteps(), async (at, _name, step) => {
    if (at === 6 + (round % 8)) process.kill(process.pid, 'SIGKILL');
    await step();
  });
}

const ROLES: Readonly<Record<string, (round: number) => Promise<unknown>>> = {
  build: (round) => locked(() => build(round, false)),
  force: (round) => locked(() => build(round, true)),
  archive: () => writeArchive(KEY, artifactFolder(root, KEY), ARCHIVE, { threads: 0, signal }),
  // What another machine built, first into an empty place, then over whatever is there.
  import: (round) => locked(() => importInto(root, ARCHIVE, round % 2 === 1)),
  // Without the lock: one rename decides all the same, and an install at the registered path is not disturbed.
  rude: (round) => build(round, true).catch(unlessOccupied),
  killed: (round) => build(round, true, fatal(round)).catch(unlessOccupied),
  verify: async () => {
    for (const row of await listArtifacts(root)) {
      const { problem } = await verifyListing(root, row);
      if (problem) report('verify', problem);
    }
  },
  load: () => readWhole(root, KEY, (artifact) => verifyStamped(root, artifact, () => Date.now() + 60_000)),
  read: () => readWhole(root, KEY, (artifact) => verifyTree(artifact)),
  quarantine: () =>
    locked(async () => {
      const problem = await findProblem(root, KEY);
      if (!problem) return;
      report('false quarantine', problem);
      await moveToQuarantine(root, KEY, { reason: problem.message, now: now() });
    }),
  prune: async (round) => {
    await litter(round);
    const rules = { superseded: true, quarantined: true, now: now() };
    const { entries } = await planPrune(root, rules);
    await executePrune(
      root,
      entries.map(({ path }) => path),
      rules,
    );
  },
};

function unlessOccupied(error: unknown): void {
  if (!(error instanceof StoreError && error.code === 'TARGET_OCCUPIED')) throw error;
}

/** What a dead build leaves, two hours old. */
async function litter(round: number): Promise<void> {
  const name = `left-${process.pid}-${round}`;
  const made = join(root, name);
  await writeTree(made, { 'BUILDING.json': `{"pid": ${DEAD}}`, 'buckets/L64/manifest.json': '{}' });
  await mkdir(`${artifactFolder(root, KEY)}.failed-${DEAD}`, { recursive: true });
  const then = Date.now() / 1000 - 7200;
  await utimes(made, then, then);
  await mkdir(stagingFolder(root), { recursive: true });
  await rename(made, join(stagingFolder(root), name));
}

function report(what: string, error: unknown): void {
  const { code, message, where, found } = error as { code?: string; message?: string; where?: string; found?: unknown };
  process.stdout.write(`${JSON.stringify({ role, what, code, message, where, found })}\n`);
}

const rounds = limit.endsWith('s') ? Number.POSITIVE_INFINITY : Number(limit);
const end = limit.endsWith('s') ? Date.now() + Number(limit.slice(0, -1)) * 1000 : Number.POSITIVE_INFINITY;
let round = Number(process.argv[5] ?? 0);
const first = round;
for (; round - first < rounds && Date.now() < end; round++) {
  try {
    await ROLES[role]!(round);
  } catch (error) {
    report('thrown', error);
  }
}
process.stdout.write(`${JSON.stringify({ role, rounds: round - first })}\n`);
