import { createHash, randomBytes } from 'node:crypto';
import { lstat, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readRecord } from '../schemas/door.js';
import { isSystemError, RecordError } from '../schemas/errors.js';
import type { Stamp } from '../schemas/generated/types.js';
import { stamp as validator } from '../schemas/generated/validators.js';
import { artifactPath, COMPILED, flatName, stampsFolder } from './paths.js';
import { type OpenedArtifact, verifyTree } from './read.js';
import { listTree } from './tree.js';

/** An artifact whose bytes were checked, now or when its stamp was written. */
export interface CheckedTree {
  /** Tree hash v2 of the bytes. */
  readonly v2: string;
  /** `used`: nothing was hashed. `unsettled`: the files changed less than a second ago, or while they were hashed. */
  readonly stamp: 'used' | 'written' | 'unsettled' | 'unwritable' | 'not-ours';
}

/** Changes younger than this may share a tick of the file system's clock with a change that comes after them. */
export const SETTLED_MS = 1000;

/**
 * Checks an artifact's bytes like `verifyTree`, but hashes them only when no stamp says that they were right and have
 * not changed since (protocol §7.1). Writes the stamp where that is allowed and possible.
 *
 * @param now Milliseconds since 1970
 */
export async function verifyStamped(root: string, artifact: OpenedArtifact, now: () => number): Promise<CheckedTree> {
  const path = join(stampsFolder(root), `${flatName(artifactPath(artifact.key))}.json`);
  const start = now();
  const before = await lookAt(artifact.model);
  const known = await stampedHash(path, artifact, before);
  if (known !== undefined) return { v2: known, stamp: 'used' };
  const { v2 } = await verifyTree(artifact);
  // The Python runtime takes a stamp for proof of its placement check too, so that only it stamps Apple artifacts.
  if (artifact.manifest.evidence?.kind !== 'portable') return { v2, stamp: 'not-ours' };
  const after = await lookAt(artifact.model);
  if (before.own !== after.own || !isSettled(before.newest, start)) return { v2, stamp: 'unsettled' };
  const written = await writeDerived(path, JSON.stringify(stampOf(artifact, before, v2)));
  return { v2, stamp: written ? 'written' : 'unwritable' };
}

/** How a tree looks to the file system: the Python runtime's digest and ours, and the youngest change in nanoseconds. */
interface TreeLook {
  readonly peer: string;
  readonly own: string;
  readonly newest: bigint;
}

export async function lookAt(model: string): Promise<TreeLook> {
  const [peer, own] = [createHash('sha256'), createHash('sha256')];
  let newest = 0n;
  for (const { path, folder } of await listTree(model)) {
    if (folder) {
      own.update(`d\0${path}\n`);
      continue;
    }
    const { size, mtimeNs, ctimeNs, ino, dev } = await lstat(join(model, path), { bigint: true });
    peer.update(`${COMPILED}/${path}:${size}:${mtimeNs}:${ino}`);
    own.update(`f\0${path}\0${size}\0${mtimeNs}\0${ctimeNs}\0${ino}\0${dev}\n`);
    if (ctimeNs > newest) newest = ctimeNs;
  }
  return { peer: peer.digest('hex'), own: own.digest('hex'), newest };
}

/** True when the youngest change is old enough to have a tick of its own, and does not lie in the future. */
export function isSettled(newestNs: bigint, nowMs: number): boolean {
  return newestNs <= BigInt(Math.floor(nowMs) - SETTLED_MS) * 1_000_000n;
}

async function stampedHash(path: string, { manifest }: OpenedArtifact, look: TreeLook): Promise<string | undefined> {
  const stamp = await readDerived(() => readRecord<Stamp>(path, validator));
  const ours = stamp?.laya_artifacts;
  if (!stamp || !ours || stamp.key.artifact_sha256 !== manifest.integrity.artifact_sha256) return undefined;
  if (manifest.integrity.tree_v2 !== undefined && manifest.integrity.tree_v2 !== ours.tree_v2) return undefined;
  return ours.files_stat === look.own ? ours.tree_v2 : undefined;
}

const stampOf = ({ manifest }: OpenedArtifact, look: TreeLook, v2: string): Stamp => ({
  key: {
    artifact_sha256: manifest.integrity.artifact_sha256,
    files_stat: look.peer,
    compute_units: manifest.placement.compute_units,
    macos_build: null,
    coremltools: null,
  },
  placement: manifest.placement,
  laya_artifacts: { tree_v2: v2, files_stat: look.own },
});

/** Derived data that can't be read is as good as none. */
export async function readDerived<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof RecordError || isSystemError(error)) return undefined;
    throw error;
  }
}

/** Writes a file of derived data, whole or not at all; false where that can't be done. It is not flushed. */
export async function writeDerived(path: string, text: string): Promise<boolean> {
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}-${randomBytes(4).toString('hex')}.tmp`);
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(temporary, text, { flag: 'wx', mode: 0o644 });
    await rename(temporary, path);
    return true;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    await rm(temporary, { force: true }).catch(() => undefined);
    return false;
  }
}
