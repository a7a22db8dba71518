import { join } from 'node:path';
import { checkRecord } from '../schemas/door.js';
import type { Rejected } from '../schemas/generated/types.js';
import { rejected } from '../schemas/generated/validators.js';
import { makeFolder, recordText, writeFileDurably } from './durable.js';
import { type ArtifactKey, rejectedFolder } from './paths.js';

/**
 * Keeps the record of a refused build, the only thing that a refusal leaves (protocol §5).
 * Returns the file's path.
 */
export async function recordRejection(root: string, { model, bucket }: ArtifactKey, record: Rejected): Promise<string> {
  const stamp = record.created_at.replace(/[-:]/g, '').replace(/\.\d+/, '');
  const name = `${model.name}-${model.revision.slice(0, 12)}-L${bucket}-${stamp}.json`;
  const path = join(rejectedFolder(root), name);
  checkRecord<Rejected>(record, rejected, path);
  await makeFolder(rejectedFolder(root));
  await writeFileDurably(path, recordText(record));
  return path;
}
