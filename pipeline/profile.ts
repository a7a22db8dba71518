import { ArtifactRevisionError } from '../registry/errors.js';
import { evidenceKind, proofsOf } from '../registry/evidence.js';
import { isSameProfile } from '../registry/index/profile.js';
import type { Manifest, Platform } from '../schemas/generated/types.js';
import type { Toolchain } from './toolchain/toolchain.js';

/** True for evidence of the toolchain's kind, measured on a machine of this one's profile; the toolchain is ready. */
export function isProvenHere(manifest: Manifest, toolchain: Toolchain): boolean {
  return (
    evidenceKind(manifest) === toolchain.kind && isSameProfile(manifest.platform, profileHere(manifest, toolchain))
  );
}

/** True when the evidence lets this machine use the artifact: portable evidence of any rank, Apple's as the manifest's own. */
export const servesHere = (manifest: Manifest, toolchain: Toolchain): boolean =>
  toolchain.kind === 'portable' ? hasPortableEvidence(manifest) : isProvenHere(manifest, toolchain);

export const hasPortableEvidence = (manifest: Manifest): boolean =>
  proofsOf(manifest).some((proof) => evidenceKind(proof) === 'portable');

const profileHere = ({ platform }: Manifest, toolchain: Toolchain): Platform =>
  toolchain.platform(platform.coremltools ?? 'unknown');

/**
 * Evidence counts on the profile that it was measured on. Portable evidence is measured again wherever the portable
 * toolchain runs; Apple evidence on a Mac of the same SoC, macOS major and coremltools.
 * Throws ArtifactRevisionError PROFILE_MISMATCH, which names both profiles.
 */
export function checkProfile(manifest: Manifest, toolchain: Toolchain, where: string): void {
  if (isProvenHere(manifest, toolchain)) return;
  const { source, artifact } = manifest;
  throw new ArtifactRevisionError('PROFILE_MISMATCH', 'the artifact was proven on another kind of machine', {
    where,
    expected: describe(toolchain.kind, profileHere(manifest, toolchain)),
    found: profileText(manifest),
    hint: `import it with --revalidate to run the gates of this machine on it, or build here: npm run build-artifacts -- --model ${source.model} --length ${artifact.length}`,
  });
}

/** The profile that an artifact was proven on, for people. */
export const profileText = (manifest: Manifest): string => describe(evidenceKind(manifest), manifest.platform);

const describe = (kind: string, { soc, macos, coremltools }: Platform): string =>
  kind === 'portable' ? 'portable' : `${soc}, macOS ${macos.split('.')[0]}, coremltools ${coremltools}`;
