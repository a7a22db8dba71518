import { platform, release } from 'node:os';
import { GRAPH, type ModelSpec } from '../registry/models.js';
import { TREE_V1 } from '../registry/tree.js';
import type { LayaError } from '../schemas/errors.js';
import type { Manifest, Rejected, Source } from '../schemas/generated/types.js';
import { evidenceFields } from './evidence.js';
import type { Converted } from './stages/convert.js';
import { ParityRefusal, type Proven } from './stages/parity.js';
import { PlacementRefusal } from './stages/place.js';

/** When and with what a build ran. */
export interface BuildFacts {
  readonly createdAt: Date;
  /** Seconds of each stage so far, by stage name. */
  readonly timings: Readonly<Record<string, number>>;
  /** Commit of this project's checkout, "-dirty" with changes in it; null outside a checkout. */
  readonly gitRevision: string | null;
  readonly projectVersion: string;
}

/** The manifest of a proven artifact: laya-apple manifest v1 and this project's additions (protocol §2). */
export function buildManifest({ placed, parity }: Proven, facts: BuildFacts): Manifest {
  const { compiled, placement } = placed;
  const { converted, bucket, digest } = compiled;
  const { order, files } = converted.resolved;
  const verdict = {
    toolchain: order.toolchain,
    placement,
    parity,
    artifactSha256: digest.v1,
    coremltools: converted.record.packages.coremltools ?? 'unknown',
    at: facts.createdAt,
  };
  return {
    format: 'laya-apple-artifact',
    format_version: 1,
    status: 'validated',
    created_at: facts.createdAt.toISOString(),
    source: sourceOf(order.model),
    checkpoint: { files: { ...files } },
    artifact: artifactOf(bucket),
    conversion: conversionOf(converted, bucket, facts),
    compiler: { ...compiled.compiler },
    ...evidenceFields(verdict),
    toolchain: { node: process.version, os: `${platform()} ${release()}`, arch: process.arch },
    integrity: {
      artifact_sha256: digest.v1,
      tree_hash: TREE_V1,
      tree_v2: digest.v2,
      files: digest.files.map((file) => ({ ...file })),
    },
    timings: { ...facts.timings },
  };
}

/** What a refusal leaves: which artifact, which stage, why, and the figures that were measured. */
export function rejectionRecord(
  stage: string,
  error: LayaError,
  { model, bucket, createdAt }: { model: ModelSpec; bucket: number; createdAt: Date },
): Rejected {
  return {
    format: 'laya-apple-artifact',
    format_version: 1,
    status: 'rejected',
    rejected_because: error.message,
    code: error.code,
    stage,
    created_at: createdAt.toISOString(),
    source: sourceOf(model),
    artifact: artifactOf(bucket),
    parity: error instanceof ParityRefusal ? { ...error.parity } : null,
    placement: error instanceof PlacementRefusal ? { ...error.placement } : null,
    expected: error.expected ?? null,
    found: error.found ?? null,
  };
}

const sourceOf = ({ name, repo, revision, weightsSha256 }: ModelSpec): Source => ({
  model: name,
  repo,
  revision,
  weights_sha256: weightsSha256,
});

const artifactOf = (bucket: number): Manifest['artifact'] => ({
  graph: GRAPH.name,
  length: bucket,
  batch: GRAPH.batch,
  precision: GRAPH.precision,
  max_options: GRAPH.maxOptions,
  inputs: [...GRAPH.inputs],
  outputs: [...GRAPH.outputs],
});

function conversionOf({ record, codeSha256 }: Converted, bucket: number, facts: BuildFacts): Record<string, unknown> {
  const entry = record.buckets[String(bucket)]!;
  return {
    laya_artifacts_version: facts.projectVersion,
    git_revision: facts.gitRevision,
    code_sha256: codeSha256,
    python: record.python,
    packages: record.packages,
    minimum_deployment_target: 'macOS15',
    compute_precision: 'FLOAT16',
    io_dtype: 'float16',
    layout_check_max_abs_logit_fp32: entry.layout_check_max_abs_logit_fp32,
    operations: entry.operations,
  };
}
