import { bundleWhere, readBundle } from '../../registry/index/bundle.js';
import type { HubAccess, OpenedIndex } from '../../registry/index/repository.js';
import { checkEntryStated } from '../../registry/signature/statement.js';
import type { TrustSource } from '../../registry/signature/trust-source.js';
import type { Verified } from '../../registry/signature/verify.js';
import type { IndexEntry, SignaturePolicy } from '../../schemas/generated/types.js';

/** By whom archives have to be signed, and what signatures are judged by. */
export interface Trust {
  readonly policy: SignaturePolicy;
  readonly root: TrustSource;
}

export interface SignedOrder {
  readonly entries: readonly IndexEntry[];
  readonly opened: OpenedIndex;
  readonly hub: HubAccess;
  readonly trust: Trust;
}

/**
 * The signed statement of each archive, by the archive's path, before a byte of any archive is used: signed by whom the
 * policy names, and about what the index says. Throws SignatureError, TrustError, HubError.
 */
export async function authenticate({
  entries,
  opened,
  hub,
  trust,
}: SignedOrder): Promise<ReadonlyMap<string, Verified>> {
  const { loadTrustRoot } = await import('../../registry/signature/trust-root.js');
  const { verifyBundle } = await import('../../registry/signature/verify.js');
  const root = await loadTrustRoot(trust.root);
  const all = new Map<string, Verified>();
  for (const entry of entries) {
    const where = bundleWhere(opened, entry);
    const verified = verifyBundle(await readBundle(hub.transport, opened, entry), root, trust.policy, where);
    checkEntryStated(verified.statement, entry, where);
    all.set(entry.path, verified);
  }
  return all;
}
