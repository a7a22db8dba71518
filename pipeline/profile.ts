import { ArtifactRevisionError } from '../registry/errors.js';
import { evidenceKind } from '../registry/evidence.js';
import type { Manifest, Platform } from '../schemas/generated/types.js';
import type { Toolchain } from './toolchain/toolchain.js';

/**
 * Evidence counts on the profile that it was measured on. Portable evidence is measured again wherever the portable
 * toolchain runs; Apple evidence on a Mac of the same SoC, macOS major and coremltools.
 * Throws ArtifactRevisionError PROFILE_MISMATCH, which names both profiles.
 */
export function checkProfile(manifest: Manifest, toolchain: Toolchain, where: string): void {
  const here = toolchain.platform(manifest.platform.coremltools ?? 'unknown');
  const kind = evidenceKind(manifest);
  if (kind === toolchain.kind && (kind === 'portable' || isSameProfile(manifest.platform, here))) return;
  throw new ArtifactRevisionError('PROFILE_MISMATCH', 'the artifact was proven on another kind of machine', {
    where,
    expected: describe(toolchain.kind, here),
    found: describe(kind, manifest.platform),
    hint:
      kind === 'apple'
        ? `import it on such a Mac, or build here: npm run build-artifacts -- --model ${manifest.source.model}`
        : `npm run build-artifacts -- --model ${manifest.source.model} --length ${manifest.artifact.length}`,
  });
}

/** The profile that an artifact was proven on, for people. */
export const profileText = (manifest: Manifest): string => describe(evidenceKind(manifest), manifest.platform);

function isSameProfile(a: Platform, b: Platform): boolean {
  return a.soc === b.soc && major(a.macos) === major(b.macos) && a.coremltools === b.coremltools;
}

const major = (version: string): string => version.split('.')[0]!;

const describe = (kind: string, { soc, macos, coremltools }: Platform): string =>
  kind === 'portable' ? 'portable' : `${soc}, macOS ${major(macos)}, coremltools ${coremltools}`;
