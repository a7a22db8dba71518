import { ArtifactRevisionError } from '../../registry/errors.js';
import type { OpenedArtifact } from '../../registry/read.js';
import type { DeviceReport } from '../probe/reports.js';

/** The kind of machine that Apple evidence is about. */
export interface MachineProfile {
  readonly soc: string;
  readonly macos: string;
  readonly build: string | null;
}

export const profileOf = ({ soc, system }: DeviceReport): MachineProfile => ({
  soc: soc ?? 'unknown',
  macos: system.version,
  build: system.build,
});

/**
 * Evidence counts on the SoC and the major version of macOS that it was measured on. The coremltools version is a fact
 * about the artifact's bytes, which the tree hash holds: nothing of it runs here. Throws ArtifactRevisionError
 * PROFILE_MISMATCH.
 */
export function requireProfile({ manifest, folder, key }: OpenedArtifact, here: MachineProfile): void {
  const { soc, macos } = manifest.platform;
  if (soc === here.soc && major(macos) === major(here.macos)) return;
  throw new ArtifactRevisionError('PROFILE_MISMATCH', 'the artifact was proven on another kind of machine', {
    where: folder,
    expected: describe(here),
    found: describe({ soc, macos }),
    hint: `prove it here: npm run build-artifacts -- --model ${key.model.name} --length ${key.bucket}`,
  });
}

const major = (version: string): string => version.split('.')[0]!;
const describe = ({ soc, macos }: Pick<MachineProfile, 'soc' | 'macos'>): string => `${soc}, macOS ${major(macos)}`;
