import { ArtifactMissingError } from '../../registry/errors.js';
import { readWhole } from '../../registry/generation.js';
import { findModel, type ModelSpec } from '../../registry/models.js';
import type { OpenedArtifact } from '../../registry/read.js';
import type { LayaError } from '../../schemas/errors.js';
import { openContext, parseBuckets, printData } from '../edge.js';
import type { GlobalOptions } from '../options.js';
import { provenanceOf, provenanceText } from '../provenance.js';

interface ProvenanceOptions extends GlobalOptions {
  readonly length?: readonly string[];
}

/** `provenance`: where a model's registered artifacts come from, as their manifests say it; no byte is hashed. */
export async function provenance(name: string, options: ProvenanceOptions): Promise<void> {
  const { root } = openContext(options);
  const model = findModel(name);
  const found = await readAll(root, model, parseBuckets(options.length, model.buckets), options.length === undefined);
  const records = found.map(provenanceOf);
  await printData(options.json ? JSON.stringify(records, null, 1) : records.map(provenanceText).join('\n\n'));
}

/** The artifacts of the buckets; those that are not registered are left out when the buckets were not named. */
async function readAll(root: string, model: ModelSpec, buckets: readonly number[], isOptional: boolean) {
  const found: OpenedArtifact[] = [];
  let missing: LayaError | undefined;
  for (const bucket of buckets) {
    try {
      found.push((await readWhole(root, { model, bucket }, async () => undefined)).artifact);
    } catch (error) {
      if (!(error instanceof ArtifactMissingError) || !isOptional) throw error;
      missing = error;
    }
  }
  if (found.length === 0 && missing) throw missing;
  return found;
}
