import type { Manifest } from '../schemas/generated/types.js';
import { ArtifactIntegrityError, ArtifactParityError } from './errors.js';

type Kind = 'portable' | 'apple';

/** Evidence as a manifest has it, of the artifact or among `other_evidence`. */
export type Proof = Pick<Manifest, 'evidence' | 'placement' | 'platform' | 'parity'>;

/** An artifact without an evidence record is the Python runtime's, which has Apple evidence only. */
export const evidenceKind = ({ evidence }: Pick<Manifest, 'evidence'>): Kind => evidence?.kind ?? 'apple';

/** All that an artifact was proven by: what its fields say first, then earlier evidence on the same bytes. */
export const proofsOf = (manifest: Manifest): Proof[] => [manifest, ...(manifest.other_evidence ?? [])];

/** Refuses one field of a manifest: throws. */
type Refuse = (field: string, found: unknown, expected: unknown) => never;

/** Largest difference of a probability that any gate allows. */
const TOLERANCE = 0.02;

/**
 * Holds a manifest's verdicts against its own figures: a `passed: true` beside figures that contradict it is refused,
 * and so is evidence about other bytes or another device. Throws ArtifactIntegrityError EVIDENCE_INCONSISTENT,
 * ArtifactParityError PARITY_MISSING.
 */
export function checkEvidence(manifest: Manifest, where: string): void {
  const bytes = manifest.integrity.artifact_sha256;
  for (const [at, proof] of proofsOf(manifest).entries()) {
    const refuse = refusing(where, at === 0 ? '' : `other_evidence.${at - 1}.`);
    if (!proof.parity.passed)
      throw new ArtifactParityError('PARITY_MISSING', 'no passed parity gate is recorded', { where });
    checkParity(proof.parity, refuse);
    checkPlacement(proof.placement, refuse);
    checkSubject(proof, bytes, refuse);
  }
  checkImported(manifest, refusing(where, ''));
}

function refusing(where: string, prefix: string): Refuse {
  return (field, found, expected) => {
    throw new ArtifactIntegrityError('EVIDENCE_INCONSISTENT', `${prefix}${field} contradicts the verdict`, {
      where: `${where}: ${prefix}${field}`,
      expected,
      found,
    });
  };
}

function checkParity(parity: Manifest['parity'], refuse: Refuse): void {
  const tolerance = parity.tolerance ?? TOLERANCE;
  if (tolerance > TOLERANCE) refuse('parity.tolerance', tolerance, `at most ${TOLERANCE}`);
  for (const field of ['prob_max_abs', 'action_prob_max_abs'] as const) {
    const found = parity[field];
    if (found !== undefined && !(found <= tolerance)) refuse(`parity.${field}`, found, tolerance);
  }
  for (const field of ['hard_mismatches', 'token_mismatch_cases'] as const)
    if ((parity[field] ?? 0) !== 0) refuse(`parity.${field}`, parity[field], 0);
  for (const field of ['all_finite', 'repeat_identical'] as const)
    if (parity[field] === false) refuse(`parity.${field}`, false, true);
  for (const { ref_margin: margin } of parity.near_tie_flips ?? [])
    if (typeof margin === 'number' && !(margin < 2 * tolerance))
      refuse('parity.near_tie_flips', margin, `below ${2 * tolerance}`);
}

/** All operations on the one device that the compute units stand for, and no change of device. */
function checkPlacement(placement: Manifest['placement'], refuse: Refuse): void {
  const { compute_units: units, ops, transitions, off_ane: off } = placement;
  const device = { CPU_AND_NE: 'ane', PORTABLE_CPU: 'cpu' }[units];
  if (device === undefined) return;
  if ((transitions ?? 0) !== 0) refuse('placement.transitions', transitions, 0);
  for (const [name, count] of Object.entries(ops ?? {}))
    if (name !== device && count !== 0) refuse(`placement.ops.${name}`, count, 0);
  if (ops !== undefined && !(ops[device]! > 0)) refuse(`placement.ops.${device}`, ops[device], 'at least 1');
  if (device === 'ane' && Object.values(off ?? {}).some((count) => count !== 0)) refuse('placement.off_ane', off, {});
}

/** What was proven, by whom, on which bytes. */
function checkSubject({ evidence, placement }: Proof, bytes: string, refuse: Refuse): void {
  if (!evidence) return;
  const { load_probe: probe } = evidence;
  if (probe && !(probe.ratio <= probe.max_ratio)) refuse('evidence.load_probe.ratio', probe.ratio, probe.max_ratio);
  if (evidence.artifact_sha256 !== bytes) refuse('evidence.artifact_sha256', evidence.artifact_sha256, bytes);
  const units = evidence.kind === 'apple' ? 'CPU_AND_NE' : 'PORTABLE_CPU';
  if (placement.compute_units !== units) refuse('placement.compute_units', placement.compute_units, units);
  if ((evidence.kind === 'portable') !== (evidence.profile === 'portable'))
    refuse('evidence.profile', evidence.profile, evidence.kind);
}

function checkImported({ imported, integrity }: Manifest, refuse: Refuse): void {
  const bytes = integrity.artifact_sha256;
  const checked = imported?.artifact_sha256_check;
  if (checked !== undefined && checked !== bytes) refuse('imported.artifact_sha256_check', checked, bytes);
  const { passed } = (imported?.parity ?? {}) as { passed?: unknown };
  if (passed !== undefined && passed !== true) refuse('imported.parity.passed', passed, true);
}
