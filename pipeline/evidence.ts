import { evidenceKind, proofsOf } from '../registry/evidence.js';
import { isSameProfile, profileSlug } from '../registry/index/profile.js';
import type { Manifest } from '../schemas/generated/types.js';
import { fromPlain, type JsonObject } from '../schemas/json.js';
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
  const platform = toolchain.platform(coremltools);
  return {
    placement: { ...placement, ops: { ...placement.ops }, operations: { ...placement.operations } },
    platform,
    parity: { ...record, passed: true, near_tie_flips: [...record.near_tie_flips] },
    evidence: {
      kind,
      executor: { ...executor, precision: { ...executor.precision } },
      profile: kind === 'portable' ? kind : profileSlug(platform),
      measured_at: at.toISOString(),
      artifact_sha256: artifactSha256,
      ...(probe ? { load_probe: { ...probe } } : {}),
    },
  };
}

/**
 * A manifest's record with the evidence of this machine. What it had stays among `other_evidence`, unless it is of the
 * same kind and profile. Everything else stays as it was.
 */
export function withEvidence(record: JsonObject, manifest: Manifest, fields: EvidenceFields): JsonObject {
  const others = proofsOf(manifest).filter(
    (one) => evidenceKind(one) !== evidenceKind(fields) || !isSameProfile(one.platform, fields.platform),
  );
  const changed = new Map(record);
  for (const [name, value] of Object.entries(fields)) changed.set(name, fromPlain(value));
  changed.delete('other_evidence');
  const kept = others.map(({ evidence, placement, platform, parity }) => {
    return { ...(evidence ? { evidence } : {}), placement, platform, parity };
  });
  return kept.length === 0 ? changed : changed.set('other_evidence', fromPlain(kept));
}
