import { readFile, stat } from 'node:fs/promises';
import { readArchive } from '../../registry/archive/read.js';
import { bundlePath, checkBundleSize, missingBundle } from '../../registry/signature/file.js';
import { checkManifestStated } from '../../registry/signature/statement.js';
import { loadTrustRoot } from '../../registry/signature/trust-root.js';
import { verifyBundle } from '../../registry/signature/verify.js';
import { isSystemError } from '../../schemas/errors.js';
import { openContext, printData } from '../edge.js';
import type { GlobalOptions } from '../options.js';
import { statementReport } from '../statement-report.js';
import { policyOf, type TrustOptions, trustSource } from '../trust.js';

interface VerifyProvenanceOptions extends GlobalOptions, TrustOptions {
  readonly bundle?: string;
}

/** `verify-provenance`: who signed an archive, and what they stated about it; writes nothing into the store. */
export async function verifyProvenance(file: string, options: VerifyProvenanceOptions): Promise<void> {
  const context = openContext(options);
  const policy = await policyOf(options);
  const bundle = options.bundle ?? bundlePath(file);
  const bytes = await readBundleFile(bundle);
  const root = await loadTrustRoot(trustSource(options, context));
  const { statement, signer } = verifyBundle(bytes, root, policy, bundle);
  const archive = await readArchive(file, { signal: context.signal });
  checkManifestStated(statement, archive.manifest, archive, bundle);
  const identity_required = policy !== undefined;
  const record = { file, bundle, archive_sha256: archive.sha256, identity_required, signer, statement };
  await printData(options.json ? JSON.stringify(record, null, 1) : statementReport(record));
}

/** Throws SignatureError SIGNATURE_MISSING, or SIGNATURE_INVALID for one that is too large. */
async function readBundleFile(path: string): Promise<Buffer> {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw missingBundle(path);
    checkBundleSize(found.size, path);
    return await readFile(path);
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) throw missingBundle(path);
    throw error;
  }
}
