import { createHash, randomBytes } from 'node:crypto';
import { lstat, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readRecord } from '../schemas/door.js';
import { isSystemError, RecordError } from '../schemas/errors.js';
import type { Stamp } from '../schemas/generated/types.js';
import { stamp as validator } from '../schemas/generated/validators.js';
import { evidenceKind, proofsOf } from './evidence.js';
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
  const { v2, stamp, save } = await lookedUp(root, artifact, now, null);
  if (stamp) return { v2, stamp };
  // A stamp of Apple evidence is about the placement too, which was not looked at.
  const isPortable = proofsOf(artifact.manifest).some((proof) => evidenceKind(proof) === 'portable');
  return { v2, stamp: isPortable ? await save() : 'not-ours' };
}

/** What an artifact with Apple evidence is checked with on this machine. */
export interface PlacementCheck {
  /** Build of macOS that was asked; null where none is told, and then nothing is stamped. */
  readonly macosBuild: string | null;
  /** Throws unless every operation is still where the manifest says. */
  readonly check: () => Promise<void>;
}

/**
 * The same for an artifact with Apple evidence: its bytes and its placement are checked, unless a stamp says that both
 * were right with these bytes under this build of macOS (protocol §7.1).
 */
export async function verifyPlaced(
  root: string,
  artifact: OpenedArtifact,
  { macosBuild, check }: PlacementCheck,
  now: () => number,
): Promise<CheckedTree> {
  const { v2, stamp, save } = await lookedUp(root, artifact, now, macosBuild);
  if (macosBuild !== null && stamp) return { v2, stamp };
  await check();
  return { v2, stamp: macosBuild === null ? 'not-ours' : await save() };
}

interface LookedUp {
  readonly v2: string;
  /** Undefined where no stamp counted, and the tree was hashed. */
  readonly stamp: 'used' | undefined;
  readonly save: () => Promise<CheckedTree['stamp']>;
}

/** Hashes a tree unless its stamp counts, and gives what keeps the stamp. */
async function lookedUp(
  root: string,
  artifact: OpenedArtifact,
  now: () => number,
  macosBuild: string | null,
): Promise<LookedUp> {
  const path = join(stampsFolder(root), `${flatName(artifactPath(artifact.key))}.json`);
  const start = now();
  const before = await lookAt(artifact.model);
  const known = await stampedHash(path, artifact, before, macosBuild);
  if (known !== undefined) return { v2: known, stamp: 'used', save: async () => 'used' };
  const { v2 } = await verifyTree(artifact);
  const save = async (): Promise<CheckedTree['stamp']> => {
    const after = await lookAt(artifact.model);
    if (before.own !== after.own || !isSettled(before.newest, start)) return 'unsettled';
    const written = await writeDerived(path, JSON.stringify(stampOf(artifact, before, v2, macosBuild)));
    return written ? 'written' : 'unwritable';
  };
  return { v2, stamp: undefined, save };
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

async function stampedHash(
  path: string,
  { manifest }: OpenedArtifact,
  look: TreeLook,
  macosBuild: string | null,
): Promise<string | undefined> {
  const stamp = await readDerived(() => readRecord<Stamp>(path, validator));
  const ours = stamp?.laya_artifacts;
  if (!stamp || !ours || stamp.key.artifact_sha256 !== manifest.integrity.artifact_sha256) return undefined;
  // Bytes are the same under every build.
  if (macosBuild !== null && stamp.key.macos_build !== macosBuild) return undefined;
  if (manifest.integrity.tree_v2 !== undefined && manifest.integrity.tree_v2 !== ours.tree_v2) return undefined;
  return ours.files_stat === look.own ? ours.tree_v2 : undefined;
}

const stampOf = ({ manifest }: OpenedArtifact, look: TreeLook, v2: string, macosBuild: string | null): Stamp => ({
  key: {
    artifact_sha256: manifest.integrity.artifact_sha256,
    files_stat: look.peer,
    compute_units: manifest.placement.compute_units,
    macos_build: macosBuild,
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
