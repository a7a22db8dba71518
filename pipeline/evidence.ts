import type { Manifest } from '../schemas/generated/types.js';
import type { ParityRecord } from './stages/parity.js';
import type { PlacementReport, Toolchain } from './toolchain/toolchain.js';

/** What the gates of this machine measured on one artifact. */
export interface Verdict {
  readonly toolchain: Toolchain;
  readonly placement: PlacementReport;
  readonly parity: ParityRecord;
  /** Tree hash v1 of the bytes it is about. */
  readonly artifactSha256: string;
  /** Version that converted the model. */
  readonly coremltools: string;
  readonly at: Date;
}

/** The fields of a manifest that say where and by whom it was proven. */
export type EvidenceFields = Required<Pick<Manifest, 'placement' | 'platform' | 'parity' | 'evidence'>>;

export function evidenceFields(verdict: Verdict): EvidenceFields {
  const { toolchain, parity, artifactSha256, coremltools, at } = verdict;
  const { load_probe: probe, ...placement } = verdict.placement;
  const { failures: _none, ...record } = parity;
  const { kind, executor } = toolchain;
  return {
    placement: { ...placement, ops: { ...placement.ops }, operations: { ...placement.operations } },
    platform: toolchain.platform(coremltools),
    parity: { ...record, passed: true, near_tie_flips: [...record.near_tie_flips] },
    evidence: {
      kind,
      executor: { ...executor, precision: { ...executor.precision } },
      profile: kind,
      measured_at: at.toISOString(),
      artifact_sha256: artifactSha256,
      ...(probe ? { load_probe: { ...probe } } : {}),
    },
  };
}
