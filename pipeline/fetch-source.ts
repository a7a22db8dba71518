import { ArtifactRevisionError } from '../registry/errors.js';
import { isCommit } from '../registry/hub/revision.js';
import { isPortable, isSameProfile, profileSlug, slugOf } from '../registry/index/profile.js';
import { type HubAccess, type OpenedIndex, openIndex } from '../registry/index/repository.js';
import { checkGeneration } from '../registry/index/seen.js';
import type { ProfileChoice } from '../registry/index/select.js';
import type { IndexEntry } from '../schemas/generated/types.js';
import type { Context } from './events.js';
import { explainHub } from './hub.js';
import type { Toolchain } from './toolchain/toolchain.js';

/** A repository of prebuilt artifacts, and what of it is read. */
export interface Source {
  readonly repo: string;
  /** A commit, branch or tag. */
  readonly revision: string;
  /** Also read an index that is older than the last one seen on this branch. */
  readonly allowRollback: boolean;
}

/** The index, checked. Throws HubError, IndexError, BackendUnavailableError OFFLINE. */
export async function openSource(source: Source, hub: HubAccess, { root, now }: Context): Promise<OpenedIndex> {
  const { repo, revision, allowRollback } = source;
  try {
    const opened = await openIndex(hub, repo, revision);
    const { generation } = opened.index;
    const read = { repo, revision, commit: opened.place.revision, generation };
    if (!isCommit(revision)) await checkGeneration(root, read, allowRollback, now());
    return opened;
  } catch (error) {
    throw explainHub(error, `prebuilt artifacts of ${repo} at ${revision}`, BUILD_HINT);
  }
}

export const BUILD_HINT = 'build here: npm run build-artifacts -- --model MODEL';

/** Profiles that will do: the named one, or those whose evidence counts on this machine. */
export function profileChoice({ profile, toolchain }: { profile?: string; toolchain: Toolchain }): ProfileChoice {
  if (profile !== undefined) return { name: `profile ${profile}`, fits: (entry) => slugOf(entry) === profile };
  const name = toolchain.kind === 'portable' ? 'the portable profile' : `profile ${hereSlug(toolchain)}`;
  return { name, fits: (entry) => isHere(entry, toolchain) };
}

/** True when this machine can measure evidence like the entry's. */
export function isHere({ platform }: IndexEntry, toolchain: Toolchain): boolean {
  if (isPortable(platform) !== (toolchain.kind === 'portable')) return false;
  return isSameProfile(platform, toolchain.platform(platform.coremltools ?? 'unknown'));
}

/** Throws ArtifactRevisionError PROFILE_MISMATCH for an archive that no gate of this machine can prove. */
export function checkProvable(entry: IndexEntry, toolchain: Toolchain, where: string): void {
  if (isHere(entry, toolchain)) return;
  throw new ArtifactRevisionError('PROFILE_MISMATCH', 'the archive was proven on another kind of machine', {
    where: `${where}: ${entry.path}`,
    expected: hereSlug(toolchain),
    found: slugOf(entry),
    hint: `npm run build-artifacts -- --model ${entry.model} --length ${entry.length}`,
  });
}

const hereSlug = (toolchain: Toolchain): string =>
  toolchain.kind === 'portable' ? 'portable' : profileSlug(toolchain.platform('unknown'));
