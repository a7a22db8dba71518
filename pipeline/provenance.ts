import type { OpenedArtifact } from '../registry/read.js';
import type { Manifest } from '../schemas/generated/types.js';
import { safeText } from './text.js';

/** What stands behind one artifact: the manifest's own words, null where it has none. */
export interface Provenance {
  readonly model: string;
  readonly bucket: number;
  readonly folder: string;
  readonly source: Manifest['source'];
  readonly checkpoint_files: Readonly<Record<string, string>> | null;
  readonly created_at: string | null;
  readonly converter: Readonly<Record<string, unknown>> | null;
  readonly compiler: NonNullable<Manifest['compiler']> | null;
  readonly platform: Manifest['platform'];
  readonly evidence: NonNullable<Manifest['evidence']> | null;
  readonly placement: Manifest['placement'];
  readonly parity: Manifest['parity'];
  /** Earlier evidence on the same bytes, of other kinds or profiles. */
  readonly other_evidence: NonNullable<Manifest['other_evidence']>;
  readonly integrity: { readonly artifact_sha256: string; readonly tree_v2: string | null };
  readonly imported: Readonly<Record<string, unknown>> | null;
}

export function provenanceOf({ key, folder, manifest }: OpenedArtifact): Provenance {
  return {
    model: key.model.name,
    bucket: key.bucket,
    folder,
    source: manifest.source,
    checkpoint_files: manifest.checkpoint?.files ?? null,
    created_at: manifest.created_at ?? null,
    converter: manifest.conversion ?? null,
    compiler: manifest.compiler ?? null,
    platform: manifest.platform,
    evidence: manifest.evidence ?? null,
    placement: manifest.placement,
    parity: manifest.parity,
    other_evidence: manifest.other_evidence ?? [],
    integrity: {
      artifact_sha256: manifest.integrity.artifact_sha256,
      tree_v2: manifest.integrity.tree_v2 ?? null,
    },
    imported: manifest.imported ?? null,
  };
}

/** The same as a short text, a line for each link of the chain. */
export function provenanceText(one: Provenance): string {
  const lines: [string, string][] = [
    ['source', `${one.source.repo} at ${one.source.revision}`],
    ['weights', `sha256 ${one.source.weights_sha256}`],
    ['converter', converterText(one.converter)],
    ['compiler', compilerText(one.compiler)],
    ['built', one.created_at ?? 'not recorded'],
    ['platform', `${one.platform.soc}, macOS ${one.platform.macos}, coremltools ${one.platform.coremltools}`],
    ['evidence', evidenceText(one)],
    ['placement', placementText(one.placement)],
    ['parity', parityText(one.parity)],
    ...one.other_evidence.map(({ evidence = null }): [string, string] => ['also', evidenceText({ evidence })]),
    ['artifact', `${one.integrity.artifact_sha256} (tree v1)`],
    ['imported', importedText(one.imported)],
    ['folder', one.folder],
  ];
  const body = lines.map(([name, value]) => `  ${name.padEnd(9)}  ${safeText(value)}`);
  return [`${one.model} L${one.bucket}`, ...body].join('\n');
}

/** Who converted, with which packages and code. */
export function converterText(conversion: Provenance['converter']): string {
  if (!conversion) return 'not recorded';
  const {
    laya_artifacts_version: own,
    laya_apple_version: peer,
    git_revision: commit,
    packages,
    code_sha256,
  } = conversion;
  const who = own === undefined ? `laya-apple ${text(peer)}` : `laya-artifacts ${text(own)}`;
  const at = typeof commit === 'string' ? ` at ${commit}` : '';
  const with_ = Object.entries((packages ?? {}) as object).map(([name, version]) => `${name} ${text(version)}`);
  const code = typeof code_sha256 === 'string' ? `; code ${code_sha256.slice(0, 12)}` : '';
  return `${who}${at}; ${with_.join(', ') || 'packages not recorded'}${code}`;
}

/** What compiled. */
export function compilerText(compiler: Provenance['compiler']): string {
  if (!compiler) return 'not recorded';
  const { name, version, kind, executable_sha256: digest } = compiler;
  return `${name} ${version} (${kind}), executable ${digest.slice(0, 12)}`;
}

/** Of which kind the evidence is, and what measured it. */
export function evidenceText({ evidence }: Pick<Provenance, 'evidence'>): string {
  if (!evidence) return 'not recorded (made by the Python runtime)';
  return `${evidence.kind}, by ${evidence.executor.name} ${evidence.executor.version}, profile ${evidence.profile}`;
}

/** Units, operations by device and transitions of a placement. */
export function placementText({ compute_units: units, ops, transitions }: Provenance['placement']): string {
  const counts = Object.entries(ops ?? {}).map(([device, count]) => `${count} on ${device}`);
  return `${units}: ${counts.join(', ') || 'operations not recorded'}, ${transitions ?? '?'} transitions`;
}

/** The figures of a parity gate that decide. */
export function parityText(parity: Provenance['parity']): string {
  const { rows, prob_max_abs: dp, tolerance, hard_mismatches: hard, reference } = parity;
  const figures = `${rows ?? '?'} rows, max |dp| ${dp ?? '?'} of ${tolerance ?? '?'} allowed, ${hard ?? '?'} decisions differ`;
  return `passed: ${figures}${reference === undefined ? '' : `; against ${reference}`}`;
}

function importedText(imported: Provenance['imported']): string {
  if (!imported) return 'no, made here';
  const { identity, issuer } = (imported.signature ?? {}) as { identity?: unknown; issuer?: unknown };
  const signed = identity === undefined ? '' : `; signed by ${text(identity)} (${text(issuer)})`;
  return `${text(imported.at)} from ${text(imported.from)}${signed}`;
}

const text = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? 'not recorded');
