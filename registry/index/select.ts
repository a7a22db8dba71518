import type { IndexEntry, PrebuiltIndex } from '../../schemas/generated/types.js';
import { ArtifactMissingError } from '../errors.js';
import { GRAPH, type ModelSpec } from '../models.js';
import { IndexError } from './errors.js';
import { profileSlug, slugOf } from './profile.js';

/** Which profiles will do, and how they are called in messages. */
export interface ProfileChoice {
  readonly name: string;
  readonly fits: (entry: IndexEntry) => boolean;
}

/** Entries of a model at its pinned revision, weights and graph, for the buckets that it is offered in. */
export function entriesOf(index: PrebuiltIndex, model: ModelSpec): IndexEntry[] {
  return index.artifacts.filter(
    (entry) =>
      entry.model === model.name &&
      entry.revision === model.revision &&
      entry.weights_sha256 === model.weightsSha256 &&
      entry.graph === GRAPH.name &&
      model.buckets.includes(entry.length),
  );
}

/** Buckets of a model that the index has an archive of for these profiles, ascending. */
export function bucketsIn(index: PrebuiltIndex, model: ModelSpec, profile: ProfileChoice): number[] {
  const lengths = entriesOf(index, model)
    .filter(profile.fits)
    .map(({ length }) => length);
  return [...new Set(lengths)].sort((a, b) => a - b);
}

/**
 * The one entry of each bucket. Throws ArtifactMissingError, which names the command that builds them, when a bucket has
 * none; IndexError INDEX_AMBIGUOUS when it has several.
 */
export function selectEntries(
  index: PrebuiltIndex,
  where: string,
  model: ModelSpec,
  buckets: readonly number[],
  profile: ProfileChoice,
): IndexEntry[] {
  const known = entriesOf(index, model);
  const fitting = buckets.map((bucket) => known.filter((entry) => entry.length === bucket && profile.fits(entry)));
  const missing = buckets.filter((_, i) => fitting[i]!.length === 0);
  if (missing.length > 0) throw notPublished(index, where, model, missing, profile);
  for (const entries of fitting) if (entries.length > 1) throw ambiguous(where, entries);
  return fitting.map(([entry]) => entry!);
}

/** What a request for everything says when there is nothing of it; `model` when it was for one. */
export function nothingPublished(
  index: PrebuiltIndex,
  where: string,
  profile: ProfileChoice,
  model?: ModelSpec,
): ArtifactMissingError {
  const what = model ? `${model.name} at its pinned revision` : 'any model at its pinned revision';
  return new ArtifactMissingError('ARTIFACT_MISSING', `no prebuilt archive of ${what} for ${profile.name}`, {
    where,
    expected: profile.name,
    found: listPublished(index.artifacts.filter((entry) => model === undefined || entry.model === model.name)),
    hint: `npm run build-artifacts -- --model ${model?.name ?? 'MODEL'}`,
  });
}

function notPublished(
  index: PrebuiltIndex,
  where: string,
  model: ModelSpec,
  missing: readonly number[],
  profile: ProfileChoice,
): ArtifactMissingError {
  const what = `${model.name} ${missing.map((bucket) => `L${bucket}`).join(', ')}`;
  return new ArtifactMissingError('ARTIFACT_MISSING', `no prebuilt archive of ${what} for ${profile.name}`, {
    where,
    expected: `${profile.name}, revision ${model.revision.slice(0, 12)}`,
    found: listPublished(index.artifacts.filter((entry) => entry.model === model.name)),
    hint: `npm run build-artifacts -- --model ${model.name} --length ${missing.join(',')}`,
  });
}

function listPublished(entries: readonly IndexEntry[]): string[] {
  const texts = entries.map(
    ({ model, length, revision, platform }) => `${model} L${length} ${profileSlug(platform)} ${revision.slice(0, 12)}`,
  );
  return texts.length > 20 ? [...texts.slice(0, 20), `${texts.length - 20} more`] : texts;
}

function ambiguous(where: string, entries: readonly IndexEntry[]): IndexError {
  const slugs = [...new Set(entries.map(slugOf))];
  return new IndexError('INDEX_AMBIGUOUS', `several archives fit ${entries[0]!.model} L${entries[0]!.length}`, {
    where,
    expected: 'one',
    found: entries.slice(0, 8).map(({ path }) => path),
    hint:
      slugs.length === entries.length
        ? `choose with --profile: ${slugs.slice(0, 8).join(', ')}`
        : 'the index has two archives for one profile: tell its publisher, or choose another --revision',
  });
}
