import { findModel } from '../../registry/models.js';
import { openContext, printData } from '../edge.js';
import type { GlobalOptions } from '../options.js';
import { checkpointFolder } from '../stages/resolve.js';

/** `download`: brings the pinned checkpoints into the hub cache, every byte verified; prints their folders. */
export async function download(names: readonly string[], options: GlobalOptions): Promise<void> {
  const context = openContext(options);
  const found = [];
  for (const model of names.map(findModel)) {
    const path = await checkpointFolder(model, context);
    found.push({ model: model.name, repo: model.repo, revision: model.revision, path });
  }
  await printData(options.json ? JSON.stringify(found, null, 1) : found.map(({ path }) => path).join('\n'));
}
