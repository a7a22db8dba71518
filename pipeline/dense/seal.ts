import { writeFile } from 'node:fs/promises';
import { platform, release } from 'node:os';
import { join } from 'node:path';
import { DENSE, DENSE_FOLDER, readDense, verifyDense } from '../../registry/dense.js';
import { recordText } from '../../registry/durable.js';
import { MANIFEST } from '../../registry/paths.js';
import { sha256File } from '../../registry/sha256.js';
import { hashTree, TREE_V1, type TreeDigest } from '../../registry/tree.js';
import { checkRecord } from '../../schemas/door.js';
import type { Dense } from '../../schemas/generated/types.js';
import { dense as validator } from '../../schemas/generated/validators.js';
import type { BuildFacts } from '../manifest.js';
import type { ParityRecord } from '../stages/parity.js';
import type { Resolved } from '../stages/resolve.js';
import type { PlacementReport } from '../toolchain/toolchain.js';

/** What the gates found out about the staged graph. */
export interface ProvenDense {
  readonly resolved: Resolved;
  /** The staged folder: holds model/, later the manifest. */
  readonly folder: string;
  readonly operations: Readonly<Record<string, number>>;
  readonly placement: PlacementReport;
  readonly parity: ParityRecord;
}

/** A staged folder with its manifest, which a reader would accept. */
export interface SealedDense {
  readonly folder: string;
  readonly manifest: Dense;
  readonly digest: TreeDigest;
}

/** Writes the manifest over the bytes that are there now, then reads the folder as the runtime will. */
export async function sealDense(proven: ProvenDense, before: TreeDigest, facts: BuildFacts): Promise<SealedDense> {
  const { folder, resolved } = proven;
  const path = join(folder, MANIFEST);
  const manifest = checkRecord<Dense>(manifestOf(proven, before, facts), validator, path);
  await writeFile(path, recordText(manifest), { flag: 'wx', mode: 0o644 });
  const opened = await readDense(resolved.order.model, folder);
  return { folder, manifest, digest: await verifyDense(opened, sha256File) };
}

/** The digest of the graph's files as they were emitted; what is sealed later must still be these. */
export const digestDense = (folder: string): Promise<TreeDigest> => hashTree(join(folder, DENSE_FOLDER));

function manifestOf({ resolved, operations, placement, parity }: ProvenDense, digest: TreeDigest, facts: BuildFacts) {
  const { model, toolchain } = resolved.order;
  const { failures: _none, ...record } = parity;
  const { name, version } = toolchain.executor;
  return {
    format: 'laya-artifacts-dense',
    format_version: 1,
    status: 'validated',
    created_at: facts.createdAt.toISOString(),
    source: {
      model: model.name,
      repo: model.repo,
      revision: model.revision,
      weights_sha256: model.weightsSha256,
    },
    checkpoint: { files: { ...resolved.files } },
    artifact: {
      graph: DENSE.name,
      precision: DENSE.precision,
      max_tokens: resolved.checkpoint.agent.maxLen,
      inputs: [...DENSE.inputs],
      outputs: [...DENSE.outputs],
    },
    conversion: {
      laya_artifacts_version: facts.projectVersion,
      git_revision: facts.gitRevision,
      operations: { ...operations },
    },
    placement: { ...placement, ops: { ...placement.ops }, operations: { ...placement.operations } },
    parity: { ...record, passed: true as const, near_tie_flips: [...record.near_tie_flips] },
    evidence: {
      kind: 'portable' as const,
      executor: { name, version, precision: { compute: 'float32', weights: 'float32', io: 'float32' } },
      artifact_sha256: digest.v1,
    },
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
