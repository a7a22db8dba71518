import type { IndexEntry, Platform } from '../../schemas/generated/types.js';

/** What evidence in a manifest or index says about the machine that it was measured on. */
type ProfileFacts = Pick<Platform, 'soc' | 'macos' | 'coremltools'>;

/** The `soc` of evidence that needs no particular machine. */
const PORTABLE = 'portable';

export const isPortable = ({ soc }: ProfileFacts): boolean => soc === PORTABLE;

/**
 * A profile as the folder that its archives are published in: `apple-m4-max-macos27-coremltools9.0`, as the Python
 * runtime names it, or `portable-coremltools9.0`.
 */
export function profileSlug(profile: ProfileFacts): string {
  const converter = `coremltools${(profile.coremltools ?? 'none').toLowerCase().replace(/[^a-z0-9.]+/g, '-')}`;
  if (isPortable(profile)) return `${PORTABLE}-${converter}`;
  const soc = profile.soc
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  return `${soc}-macos${major(profile.macos).replace(/[^A-Za-z0-9]+/g, '-')}-${converter}`;
}

/** Equal SoC, macOS major and coremltools; portable evidence fits wherever portable evidence is measured. */
export function isSameProfile(a: ProfileFacts, b: ProfileFacts): boolean {
  if (isPortable(a) || isPortable(b)) return isPortable(a) && isPortable(b);
  return a.soc === b.soc && major(a.macos) === major(b.macos) && a.coremltools === b.coremltools;
}

export const slugOf = ({ platform }: IndexEntry): string => profileSlug(platform);

const major = (version: string): string => version.split('.')[0]!;
