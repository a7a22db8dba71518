import { inParallel } from '../../registry/hub/parallel.js';
import { statementOf } from '../../registry/signature/statement.js';
import type { SignatureStatement } from '../../schemas/generated/types.js';
import type { Context } from '../events.js';
import type { Packed } from './pack.js';

/** Signs a statement, and gives the text of the bundle. Throws SigningError. */
export type Sign = (statement: SignatureStatement) => Promise<string>;

/** A bundle for each archive, by the archive's digest; those in `known` are not signed again. */
export async function sign(
  { packed, by, known }: { packed: readonly Packed[]; by: Sign; known: Map<string, string> },
  { emit }: Context,
): Promise<void> {
  const fresh = packed.filter(({ sha256 }) => !known.has(sha256));
  let done = 0;
  await inParallel(fresh, async ({ manifest, sha256 }) => {
    known.set(sha256, await by(statementOf(manifest, { sha256 })));
    done++;
    emit({ kind: 'progress', label: 'signing', done, total: fresh.length });
  });
}
