import { join } from 'node:path';
import { recordText } from '../../registry/durable.js';
import { findModel, GRAPH } from '../../registry/models.js';
import { COMPILED, MANIFEST } from '../../registry/paths.js';
import { hashTree, TREE_V1, type TreeDigest } from '../../registry/tree.js';
import type { Manifest } from '../../schemas/generated/types.js';
import { writeTree } from '../files.js';

export const KEY = { model: findModel('laya-tiny'), bucket: 64 };

/** A model tree with the files that every artifact has; its bytes are no real model. */
export const FILES = {
  'coremldata.bin': 'description',
  'metadata.json': '[]',
  'model.mil': 'program(1.3)\n',
  'weights/weight.bin': 'weights',
};

/** Writes an artifact folder whose manifest fits its bytes; `change` edits the manifest before it is written. */
export async function writeArtifact(
  folder: string,
  files: Readonly<Record<string, string>> = FILES,
  change: (manifest: Manifest) => void = () => undefined,
): Promise<Manifest> {
  const model = join(folder, COMPILED);
  await writeTree(model, files);
  const digest = await hashTree(model);
  const manifest = manifestFor(digest);
  change(manifest);
  await writeTree(folder, { [MANIFEST]: recordText(manifest) });
  return manifest;
}

function manifestFor({ v1, v2, files }: TreeDigest): Manifest {
  const { name: model, repo, revision, weightsSha256 } = KEY.model;
  return {
    format: 'laya-apple-artifact',
    format_version: 1,
    status: 'validated',
    source: { model, repo, revision, weights_sha256: weightsSha256 },
    artifact: { graph: GRAPH.name, length: 64, batch: 1, precision: 'float16', max_options: 32 },
    placement: { compute_units: 'PORTABLE_CPU', ops: { cpu: 3 }, transitions: 0 },
    platform: { soc: 'portable', macos: 'none', coremltools: '9.0' },
    parity: { passed: true, tolerance: 0.02, rows: 3, prob_max_abs: 0.001, action_prob_max_abs: 0.001 },
    integrity: { artifact_sha256: v1, tree_hash: TREE_V1, tree_v2: v2, files: files.map((file) => ({ ...file })) },
    evidence: {
      kind: 'portable',
      executor: { name: 'onnxruntime', version: '1.30.0' },
      profile: 'portable',
      artifact_sha256: v1,
    },
  };
}
