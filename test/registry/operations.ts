import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { commitArtifact } from '../../registry/commit.js';
import { recordText } from '../../registry/durable.js';
import { ArtifactMissingError } from '../../registry/errors.js';
import { isWhole, readWhole } from '../../registry/generation.js';
import { artifactFolder, COMPILED, quarantineFolder } from '../../registry/paths.js';
import { executePrune, planPrune } from '../../registry/prune.js';
import { moveToQuarantine } from '../../registry/quarantine.js';
import { dropQuarantined, restoreQuarantined } from '../../registry/quarantine-entries.js';
import { readArtifact, verifyTree } from '../../registry/read.js';
import { restage } from '../../registry/restage.js';
import type { StoreSteps } from '../../registry/steps.js';
import { LayaError } from '../../schemas/errors.js';
import { writeTree } from '../files.js';
import { FILES, KEY, writeArtifact } from './artifact.js';

/** An operation on the store that can be stopped or fail at every step. */
export interface Operation {
  /** Brings a fresh root into the state before. */
  prepare(root: string): Promise<unknown>;
  run(root: string, steps: Partial<StoreSteps>): Promise<unknown>;
  /** What readers may be served after the operation was stopped anywhere. */
  readonly serves: readonly (string | undefined)[];
  /** What they are served after it ran to its end. */
  readonly gives: string | undefined;
  /** True when a whole artifact must exist somewhere, whatever happens. */
  readonly keeps: boolean;
}

const TARGET = (root: string): string => artifactFolder(root, KEY);
const STAGED = (root: string): string => join(root, 'artifacts/.staging/build/buckets/L64');
const ENTRY = 'an entry';
const now = (): Date => new Date('2026-01-02T03:04:05Z');
const LATER = { superseded: true, quarantined: false, now: new Date(Date.now() + 86_400_000) };

const put = (folder: string, build: string) => writeArtifact(folder, { ...FILES, 'model.mil': build });

async function putDamaged(folder: string): Promise<void> {
  await put(folder, 'damaged');
  await writeFile(join(folder, COMPILED, 'weights/weight.bin'), 'other');
}

async function putQuarantined(root: string): Promise<void> {
  await put(join(quarantineFolder(root), ENTRY), 'old');
  await writeFile(join(quarantineFolder(root), ENTRY, 'QUARANTINED.json'), '{"reason": "x", "at": "y", "from": "z"}');
}

async function putRubbish(root: string): Promise<void> {
  await put(TARGET(root), 'old');
  await put(TARGET(root).replace('4defbfb4419a', '0123456789ab'), 'superseded');
  await writeTree(root, { 'artifacts/.staging/a/x': '', 'verified/artifacts/gone.json': '{}' });
}

async function prune(root: string, steps: Partial<StoreSteps>): Promise<void> {
  const { entries } = await planPrune(root, LATER);
  const paths = entries.map(({ path }) => path);
  const failed = (await executePrune(root, paths, { ...LATER, steps })).find(({ problem }) => problem);
  if (failed?.problem) throw failed.problem;
}

const commit = (replace: boolean) => (root: string, steps: Partial<StoreSteps>) =>
  commitArtifact(root, KEY, STAGED(root), { replace, steps, now });
/** The same bytes under another manifest, as `validate` publishes them. */
async function giveEvidence(root: string, steps: Partial<StoreSteps>): Promise<void> {
  const artifact = await readArtifact(KEY, TARGET(root));
  const manifest = recordText({ ...artifact.manifest, created_at: 'later' });
  await restage(artifact, await verifyTree(artifact), manifest, STAGED(root), steps);
  await commit(true)(root, steps);
}
const quarantine = (root: string, steps: Partial<StoreSteps>) =>
  moveToQuarantine(root, KEY, { reason: 'x', now: now(), steps });

export const OPERATIONS: Readonly<Record<string, Operation>> = {
  register: {
    prepare: (root) => put(STAGED(root), 'new'),
    run: commit(false),
    serves: [undefined, 'new'],
    gives: 'new',
    keeps: false,
  },
  replace: {
    prepare: async (root) => [await put(TARGET(root), 'old'), await put(STAGED(root), 'new')],
    run: commit(true),
    serves: ['old', 'new'],
    gives: 'new',
    keeps: true,
  },
  'give evidence': {
    prepare: (root) => put(TARGET(root), 'old'),
    run: giveEvidence,
    serves: ['old'],
    gives: 'old',
    keeps: true,
  },
  'undo a replacement that died, and replace': {
    prepare: async (root) => {
      await put(`${TARGET(root)}.old-4194305`, 'old');
      await put(STAGED(root), 'new');
    },
    run: commit(true),
    serves: ['old', 'new'],
    gives: 'new',
    keeps: true,
  },
  'register over a damaged one': {
    prepare: async (root) => [await putDamaged(TARGET(root)), await put(STAGED(root), 'new')],
    run: commit(false),
    serves: ['damaged', undefined, 'new'],
    gives: 'new',
    keeps: false,
  },
  quarantine: {
    prepare: (root) => putDamaged(TARGET(root)),
    run: quarantine,
    serves: ['damaged', undefined],
    gives: undefined,
    keeps: false,
  },
  'quarantine by mistake': {
    prepare: (root) => put(TARGET(root), 'old'),
    run: quarantine,
    serves: ['old', undefined],
    gives: 'old',
    keeps: true,
  },
  restore: {
    prepare: putQuarantined,
    run: (root, steps) => restoreQuarantined(root, ENTRY, KEY, { now, steps }),
    serves: [undefined, 'old'],
    gives: 'old',
    keeps: true,
  },
  drop: {
    prepare: putQuarantined,
    run: (root, steps) => dropQuarantined(root, ENTRY, steps),
    serves: [undefined],
    gives: undefined,
    keeps: false,
  },
  prune: { prepare: putRubbish, run: prune, serves: ['old'], gives: 'old', keeps: true },
};

/** Which build readers are served, told by a file of its model; `damaged` for one that the checks refuse. */
export async function served(root: string): Promise<string | undefined> {
  try {
    const { artifact } = await readWhole(root, KEY, (opened) => verifyTree(opened));
    return await readFile(join(artifact.model, 'model.mil'), 'utf8');
  } catch (error) {
    if (error instanceof ArtifactMissingError) return undefined;
    if (error instanceof LayaError) return 'damaged';
    throw error;
  }
}

/** Whole artifacts that stand at or beside the registered path, or in quarantine. */
export async function wholeCopies(root: string): Promise<number> {
  const parents = [dirname(TARGET(root)), quarantineFolder(root)];
  let count = 0;
  for (const parent of parents)
    for (const name of await readdir(parent).catch(() => [])) if (await isWhole(KEY, join(parent, name))) count++;
  return count;
}

/** Registers one more build over whatever was left. */
export async function recover(root: string, steps: Partial<StoreSteps>): Promise<unknown> {
  const staged = join(root, 'artifacts/.staging/third/buckets/L64');
  await mkdir(dirname(staged), { recursive: true });
  await put(staged, 'third');
  return commitArtifact(root, KEY, staged, { replace: true, now, steps });
}
