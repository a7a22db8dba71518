import { join } from 'node:path';
import { readRecord } from '../../schemas/door.js';
import type { IndexSeen } from '../../schemas/generated/types.js';
import { indexSeen as validator } from '../../schemas/generated/validators.js';
import { recordText } from '../durable.js';
import { indexesFolder } from '../paths.js';
import { readDerived, writeDerived } from '../stamps.js';
import { IndexError } from './errors.js';

/** An index that was read from a branch or tag. */
export interface ReadIndex {
  readonly repo: string;
  /** The branch or tag. */
  readonly revision: string;
  readonly commit: string;
  /** Undefined for an index that does not tell. */
  readonly generation: number | undefined;
}

/**
 * Notes the index as the last one seen there. Throws IndexError INDEX_ROLLBACK, and notes nothing, when a newer one was
 * seen before: the branch went back, or what answers is out of date. `allowed` takes it all the same.
 */
export async function checkGeneration(root: string, read: ReadIndex, allowed: boolean, now: Date): Promise<void> {
  const { repo, revision, commit, generation = null } = read;
  const path = seenPath(root, repo, revision);
  const last = await readDerived(() => readRecord<IndexSeen>(path, validator));
  if (last?.commit === commit) return;
  const isOlder = last?.generation != null && (generation === null || generation < last.generation);
  if (isOlder && !allowed)
    throw new IndexError('INDEX_ROLLBACK', `the index of ${repo} is older than the one last read from ${revision}`, {
      where: `${repo}@${commit}`,
      expected: `generation ${last.generation} or later, as at ${last.commit}`,
      found: generation === null ? 'no generation' : `generation ${generation}`,
      hint: `read the newer one with --revision ${last.commit}, or accept this one with --allow-rollback`,
    });
  await writeDerived(path, recordText({ repo, revision, commit, generation, at: now.toISOString() }));
}

const seenPath = (root: string, repo: string, revision: string): string =>
  join(indexesFolder(root), `${[...repo.split('/'), encodeURIComponent(revision)].join('--')}.json`);
