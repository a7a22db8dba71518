import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ArtifactIntegrityError } from '../../registry/errors.js';
import { COMPILED } from '../../registry/paths.js';
import { requireFiles } from '../../registry/read.js';
import { hashTree, type TreeDigest } from '../../registry/tree.js';
import { CompileError } from '../errors.js';
import type { Context } from '../events.js';
import type { CompilerIdentity } from '../tools/compiler.js';
import type { Converted } from './convert.js';

/** A compiled model in its future artifact folder, and the digest of its bytes. */
export interface Compiled {
  readonly converted: Converted;
  readonly bucket: number;
  /** The staged artifact folder: holds `model.mlmodelc`, later the manifest. */
  readonly folder: string;
  readonly model: string;
  readonly compiler: CompilerIdentity;
  readonly digest: TreeDigest;
}

/** Stage 3: a package to a `.mlmodelc` whose required files are there and not empty (fault B11). */
export async function compile(
  { converted, bucket }: { converted: Converted; bucket: number },
  context: Context,
): Promise<Compiled> {
  const { staging, packages, resolved } = converted;
  const folder = join(staging.path, 'buckets', `L${bucket}`);
  const model = join(folder, COMPILED);
  await mkdir(folder, { recursive: true });
  const compiler = await resolved.order.toolchain.compile(packages.get(bucket)!, model, staging.temp, context);
  return { converted, bucket, folder, model, compiler, digest: await digestOf(model) };
}

async function digestOf(model: string): Promise<TreeDigest> {
  try {
    const digest = await hashTree(model);
    requireFiles(model, digest);
    return digest;
  } catch (error) {
    if (!(error instanceof ArtifactIntegrityError)) throw error;
    throw new CompileError('COMPILE_INCOMPLETE', `the compiler left no whole model: ${error.message}`, {
      where: model,
      cause: error,
    });
  }
}
