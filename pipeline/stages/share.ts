import { shareFiles } from '../../registry/sharing.js';
import type { Context } from '../events.js';
import type { Compiled } from './compile.js';

/** Between compiling and placing: files that a registered bucket of the model has too become links to its bytes. */
export async function share(compiled: Compiled, { root }: Context): Promise<Compiled> {
  const { bucket, converted, model, digest } = compiled;
  await shareFiles(root, { model: converted.resolved.order.model, bucket }, model, digest);
  return compiled;
}
