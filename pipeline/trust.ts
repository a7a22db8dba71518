import { readPolicy } from '../registry/signature/policy.js';
import { type TrustSource, trustMirror } from '../registry/signature/trust-source.js';
import type { SignaturePolicy } from '../schemas/generated/types.js';
import { UsageError } from './errors.js';
import type { Context } from './events.js';
import type { Trust } from './stages/authenticate.js';

/** How a command line says whom it trusts. */
export interface TrustOptions {
  readonly identity?: string;
  readonly issuer?: string;
  readonly policy?: string;
  readonly trustedRoot?: string;
}

/** The policy of the options, undefined where they name nobody. Throws UsageError, TrustError TRUST_POLICY_INVALID. */
export async function policyOf({ identity, issuer, policy }: TrustOptions): Promise<SignaturePolicy | undefined> {
  if (policy !== undefined) {
    if (identity === undefined && issuer === undefined) return readPolicy(policy);
    throw usage('--policy takes the place of --identity and --issuer', 'leave one or the other out');
  }
  if (identity === undefined && issuer === undefined) return undefined;
  if (identity && issuer) return { identities: [{ identity, issuer }] };
  const [given, missing] = identity ? ['--identity', '--issuer'] : ['--issuer', '--identity'];
  throw usage(
    `${given} says nothing without ${missing}`,
    `add ${missing}: the same name at another issuer is someone else`,
  );
}

/** What signatures are judged by. Throws TrustError. */
export function trustSource({ trustedRoot }: TrustOptions, { env, root, offline }: Context): TrustSource {
  const mirror = trustMirror(env);
  const file = trustedRoot === undefined ? {} : { file: trustedRoot };
  return { ...file, ...(mirror ? { mirror } : {}), cache: root, offline };
}

/** Whose signatures a fetch requires; undefined where it requires none. Throws UsageError, TrustError. */
export async function requiredTrust(
  options: TrustOptions & { readonly requireSignature?: boolean },
  context: Context,
): Promise<Trust | undefined> {
  const policy = await policyOf(options);
  if (options.requireSignature) {
    if (policy) return { policy, root: trustSource(options, context) };
    throw usage('--require-signature does not say whose', 'add --identity and --issuer, or --policy FILE');
  }
  if (!policy && options.trustedRoot === undefined) return undefined;
  throw usage('signatures are only looked at with --require-signature', 'add --require-signature');
}

const usage = (message: string, hint: string): UsageError => new UsageError('USAGE', message, { hint });
