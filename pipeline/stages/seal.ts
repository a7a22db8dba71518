import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { recordText } from '../../registry/durable.js';
import { ArtifactIntegrityError } from '../../registry/errors.js';
import { MANIFEST } from '../../registry/paths.js';
import { readArtifact, verifyTree } from '../../registry/read.js';
import { checkRecord } from '../../schemas/door.js';
import type { Manifest } from '../../schemas/generated/types.js';
import { manifest as validator } from '../../schemas/generated/validators.js';
import type { Context } from '../events.js';
import { type BuildFacts, buildManifest } from '../manifest.js';
import type { Proven } from './parity.js';

/** A staged artifact folder with its manifest, which a reader would accept. */
export interface Sealed {
  readonly proven: Proven;
  readonly folder: string;
  readonly manifest: Manifest;
}

/**
 * Stage 6: writes the manifest, then reads the folder as the runtime will. The bytes are hashed again,
 * because the gates ran in between: what is registered is what was proven.
 */
export async function seal(
  { proven, facts }: { proven: Proven; facts: BuildFacts },
  _context: Context,
): Promise<Sealed> {
  const { bucket, folder, converted, digest } = proven.placed.compiled;
  const path = join(folder, MANIFEST);
  const manifest = checkRecord<Manifest>(buildManifest(proven, facts), validator, path);
  await writeFile(path, recordText(manifest), { flag: 'wx', mode: 0o644 });
  const artifact = await readArtifact({ model: converted.resolved.order.model, bucket }, folder);
  const now = await verifyTree(artifact);
  if (now.v2 === digest.v2) return { proven, folder, manifest };
  throw new ArtifactIntegrityError('TREE_MISMATCH', 'the model changed while its gates ran', {
    where: artifact.model,
    expected: digest.v2,
    found: now.v2,
  });
}
