import { evidenceKind, type Proof, proofsOf } from '../registry/evidence.js';
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
  const others = proofsOf(manifest).filter((one) => !isSameKind(one, fields));
  const changed = new Map(record);
  for (const [name, value] of Object.entries(fields)) changed.set(name, fromPlain(value));
  changed.delete('other_evidence');
  return withOthers(changed, others);
}

/**
 * A manifest's record with what another manifest says about the same bytes, where it has no evidence of that kind and
 * profile itself. About other bytes nothing is taken.
 */
export function withEvidenceOf(record: JsonObject, manifest: Manifest, other: Manifest): JsonObject {
  if (!isSameTree(manifest, other)) return record;
  const own = proofsOf(manifest);
  const more = proofsOf(other).filter((one) => !own.some((mine) => isSameKind(mine, one)));
  return withOthers(record, [...own.slice(1), ...more]);
}

function isSameTree({ integrity: a }: Manifest, { integrity: b }: Manifest): boolean {
  const known = a.tree_v2 !== undefined && b.tree_v2 !== undefined;
  return a.artifact_sha256 === b.artifact_sha256 && (!known || a.tree_v2 === b.tree_v2);
}

const isSameKind = (a: Proof, b: Proof): boolean =>
  evidenceKind(a) === evidenceKind(b) && isSameProfile(a.platform, b.platform);

function withOthers(record: JsonObject, others: readonly Proof[]): JsonObject {
  if (others.length === 0) return record;
  const bare = others.map(({ evidence, placement, platform, parity }) => {
    return { ...(evidence ? { evidence } : {}), placement, platform, parity };
  });
  return new Map(record).set('other_evidence', fromPlain(bare));
}
