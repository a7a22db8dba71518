import { dirname, join, relative } from 'node:path';
import { HubError } from './errors.js';

/** A repository at one commit. */
export interface HubRevision {
  /** "owner/name". */
  readonly repo: string;
  /** The commit, 40 lower-case hex digits; never a branch or tag. */
  readonly revision: string;
}

/**
 * Paths of one commit in a Hugging Face hub cache, in the layout that Python's huggingface_hub reads and writes:
 * contents under `blobs/` by their digest, and one symbolic link a file under `snapshots/<commit>/`.
 */
export interface HubPlace extends HubRevision {
  readonly blobs: string;
  readonly snapshot: string;
  /** Commits that branches and tags were at, one file each. */
  readonly refs: string;
  /** The commit's list of files, which huggingface_hub 1.x also keeps. */
  readonly listing: string;
}

/**
 * @throws HubError HUB_NAME for a repository or revision that is not of the form above
 */
export function hubPlace(cacheDir: string, { repo, revision }: HubRevision): HubPlace {
  const owner = repo.split('/');
  const isName = (part: string) =>
    /^[A-Za-z0-9][\w.-]{0,95}$/.test(part) && !part.includes('--') && !part.includes('..');
  if (owner.length !== 2 || !owner.every(isName)) {
    throw new HubError('HUB_NAME', `not a repository name: ${JSON.stringify(repo.slice(0, 80))}`, {
      expected: 'owner/name',
      found: repo.slice(0, 80),
    });
  }
  if (!/^[0-9a-f]{40}$/.test(revision)) {
    throw new HubError('HUB_NAME', `not a commit: ${JSON.stringify(revision.slice(0, 80))}`, {
      expected: '40 lower-case hex digits; a branch or tag can move',
      found: revision.slice(0, 80),
    });
  }
  const folder = join(cacheDir, `models--${owner.join('--')}`);
  return {
    repo,
    revision,
    blobs: join(folder, 'blobs'),
    refs: join(folder, 'refs'),
    snapshot: join(folder, 'snapshots', revision),
    listing: join(folder, 'trees', `${revision}.json`),
  };
}

/** Path of a file below the snapshot. */
export const pointerPath = (place: HubPlace, file: string): string => join(place.snapshot, file);

/** Path of the content with this digest. */
export const blobPath = (place: HubPlace, name: string): string => join(place.blobs, name);

/** What the link at `pointerPath` holds: relative, so that the cache can be moved. */
export const linkTarget = (place: HubPlace, file: string, name: string): string =>
  relative(dirname(pointerPath(place, file)), blobPath(place, name));
