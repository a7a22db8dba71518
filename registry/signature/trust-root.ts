import { join } from 'node:path';
import { TrustedRoot } from '@sigstore/protobuf-specs';
import { toTrustMaterial } from '@sigstore/verify';
import { readText } from '../../schemas/door.js';
import { isSystemError } from '../../schemas/errors.js';
import { parseJson, toPlain } from '../../schemas/json.js';
import { makeFolder, recordText, writeFileDurably } from '../durable.js';
import { trustFolder } from '../paths.js';
import { TrustError } from './errors.js';
import type { TrustSource } from './trust-source.js';

/** Certificate authorities, logs and timestamp authorities that signatures are judged by. */
export type TrustRoot = TrustedRoot;

const TIMEOUT_MS = 20_000;

/**
 * The trust root: the named file; else what Sigstore publishes, brought by TUF and kept; offline, what was kept. Throws
 * TrustError.
 */
export async function loadTrustRoot(source: TrustSource): Promise<TrustRoot> {
  if (source.file !== undefined) return readTrustRoot(source.file, 'name a trusted_root.json with --trusted-root');
  const folder = join(trustFolder(source.cache), source.mirror ? encodeURIComponent(source.mirror.url) : 'public');
  const kept = join(folder, 'trusted_root.json');
  if (source.offline) return readTrustRoot(kept, 'run once without --offline to bring it, or use --trusted-root FILE');
  await makeFolder(folder);
  const root = await bring(join(folder, 'tuf'), source);
  await writeFileDurably(kept, recordText(TrustedRoot.toJSON(root)));
  return root;
}

async function bring(cachePath: string, { mirror }: TrustSource): Promise<TrustRoot> {
  const { getTrustedRoot, TUFError } = await import('@sigstore/tuf');
  const from = mirror ? { mirrorURL: mirror.url, rootPath: mirror.root } : {};
  const get = (forceInit: boolean) =>
    getTrustedRoot({ ...from, cachePath, forceCache: true, forceInit, timeout: TIMEOUT_MS });
  try {
    // Other errors than its own come from metadata that were cut off in the cache: it starts from the first root again.
    return await get(false).catch((error: unknown) => (error instanceof TUFError ? Promise.reject(error) : get(true)));
  } catch (error) {
    throw new TrustError('TRUST_ROOT_UNAVAILABLE', "can't get the trust root from where Sigstore publishes it", {
      where: mirror?.url ?? 'the public TUF repository of Sigstore',
      found: (error as Error).message,
      hint: 'try again; or use --trusted-root FILE, or --offline with the copy of an earlier run',
      cause: error,
    });
  }
}

async function readTrustRoot(path: string, hint: string): Promise<TrustRoot> {
  try {
    const root = TrustedRoot.fromJSON(toPlain(parseJson(await readText(path))));
    const { certificateAuthorities, tlogs } = toTrustMaterial(root);
    if (certificateAuthorities.length > 0 && tlogs.length > 0) return root;
    throw new RangeError('it names no certificate authority or no log');
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR'))
      throw new TrustError('TRUST_ROOT_MISSING', 'there is no trust root', { where: path, hint, cause: error });
    throw new TrustError('TRUST_ROOT_INVALID', 'the file is no trust root', {
      where: path,
      expected: 'a trusted_root.json of Sigstore',
      found: (error as Error).message,
      hint,
      cause: error,
    });
  }
}
