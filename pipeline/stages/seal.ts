import { join } from 'node:path';
import { recordText } from '../../registry/durable.js';
import { ArtifactIntegrityError } from '../../registry/errors.js';
import { MANIFEST } from '../../registry/paths.js';
import { checkManifest, parseManifest, verifyTree } from '../../registry/read.js';
import type { Manifest } from '../../schemas/generated/types.js';
import type { Context } from '../events.js';
import { type BuildFacts, buildManifest } from '../manifest.js';
import type { Proven } from './parity.js';

/** An artifact whose manifest a reader would accept. */
export interface Sealed {
  readonly proven: Proven;
  readonly folder: string;
  readonly manifest: Manifest;
  /** The manifest as it is to stand on disk. */
  readonly text: string;
}

/**
 * Stage 6: makes the manifest and judges both as the runtime will. The bytes are hashed again, because the gates ran in
 * between: what is registered is what was proven.
 */
export async function seal(
  { proven, facts }: { proven: Proven; facts: BuildFacts },
  _context: Context,
): Promise<Sealed> {
  const { bucket, folder, model, converted, digest } = proven.placed.compiled;
  const path = join(folder, MANIFEST);
  const text = recordText(buildManifest(proven, facts));
  const manifest = parseManifest(text, path);
  const key = { model: converted.resolved.order.model, bucket };
  checkManifest(key, manifest, path);
  const now = await verifyTree({ key, folder, model, manifest });
  if (now.v2 === digest.v2) return { proven, folder, manifest, text };
  throw new ArtifactIntegrityError('TREE_MISMATCH', 'the model changed while its gates ran', {
    where: model,
    expected: digest.v2,
    found: now.v2,
  });
}
