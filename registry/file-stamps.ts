import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { readRecord } from '../schemas/door.js';
import type { CheckpointStamp } from '../schemas/generated/types.js';
import { checkpointStamp as validator } from '../schemas/generated/validators.js';
import { checkpointStampsFolder } from './paths.js';
import { sha256File } from './sha256.js';
import { isSettled, readDerived, writeDerived } from './stamps.js';

/** Smaller files are hashed every time. */
const LARGE_BYTES = 1n << 20n;

/** SHA-256 of the files of one folder, with those of large unchanged files remembered (protocol §7.2). */
export interface StampedFolder {
  /** Hex digest of a file's content. Throws the system's error if it can't be read. */
  digest(path: string): Promise<string>;
  /** Keeps what was hashed for the next time; false where that can't be done. */
  save(): Promise<boolean>;
}

/** @param now Milliseconds since 1970 */
export async function openStampedFolder(root: string, folder: string, now: () => number): Promise<StampedFolder> {
  const path = resolve(folder);
  const name = createHash('sha256').update(path).digest('hex').slice(0, 32);
  const place = join(checkpointStampsFolder(root), `${name}.json`);
  const known = (await readDerived(() => readRecord<CheckpointStamp>(place, validator)))?.files ?? {};
  const files = new Map(Object.entries(known));
  let changed = false;
  return {
    digest: async (file) => {
      const start = now();
      const before = await lookAt(file);
      const entry = files.get(file);
      if (entry?.stat === before.look) return entry.sha256;
      const sha256 = await sha256File(file);
      const isStable = (await lookAt(file)).look === before.look && isSettled(before.ctimeNs, start);
      if (before.size < LARGE_BYTES || !isStable) return sha256;
      files.set(file, { stat: before.look, sha256 });
      changed = true;
      return sha256;
    },
    save: async () => !changed || writeDerived(place, JSON.stringify({ path, files: Object.fromEntries(files) })),
  };
}

async function lookAt(file: string) {
  const { size, mtimeNs, ctimeNs, ino, dev } = await stat(file, { bigint: true });
  return { size, ctimeNs, look: `${size}:${mtimeNs}:${ctimeNs}:${ino}:${dev}` };
}
