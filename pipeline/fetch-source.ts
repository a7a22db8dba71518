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

interface Wanted {
  /** Slug of a profile. */
  readonly profile?: string;
  readonly revalidate?: boolean;
  readonly toolchain: Toolchain;
}

/**
 * Profiles that will do: the named one, or those whose evidence counts on this machine. What is to be proven here by
 * other gates than its own is portable unless a profile is named: of several Macs' archives none is nearer.
 */
export function profileChoice({ profile, revalidate, toolchain }: Wanted): ProfileChoice {
  if (profile !== undefined) return { name: `profile ${profile}`, fits: (entry) => slugOf(entry) === profile };
  if (toolchain.kind === 'portable' || revalidate)
    return { name: 'the portable profile', fits: ({ platform }) => isPortable(platform) };
  return { name: `profile ${hereSlug(toolchain)}`, fits: (entry) => isHere(entry, toolchain) };
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
    hint: `add --revalidate to run the gates of this machine on it, or build here: npm run build-artifacts -- --model ${entry.model} --length ${entry.length}`,
  });
}

const hereSlug = (toolchain: Toolchain): string =>
  toolchain.kind === 'portable' ? 'portable' : profileSlug(toolchain.platform('unknown'));
