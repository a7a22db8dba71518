import { buildDense } from '../pipeline/dense/build.js';
import { buildArtifacts } from '../pipeline/line.js';
import { findModel } from '../registry/models.js';
import { testContext, testOrder } from './pipeline/context.js';

/** Builds laya-tiny's artifacts below a root, as the command does; throws when one is not registered. */
export async function registerLayaTiny(root: string, buckets = findModel('laya-tiny').buckets): Promise<void> {
  const { rows } = await buildArtifacts(testOrder({ buckets }), testContext(root));
  if (rows.some(({ outcome }) => outcome === 'rejected')) throw new Error(JSON.stringify(rows));
}

/** Builds laya-tiny's any-length graph below a root. */
export async function registerLayaTinyDense(root: string): Promise<void> {
  const { outcome } = await buildDense(testOrder(), testContext(root));
  if (outcome === 'rejected') throw new Error('the any-length graph was refused');
}
