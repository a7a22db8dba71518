import { link, rename, rm, unlink } from 'node:fs/promises';
import { syncPath, writeFileDurably } from './durable.js';

/** The file system calls by which the store changes what readers see; tests inject faults here. */
export interface StoreSteps {
  readonly rename: (from: string, to: string) => Promise<void>;
  /** Flushes a file or folder to the disk. */
  readonly sync: (path: string) => Promise<void>;
  readonly link: (existing: string, path: string) => Promise<void>;
  readonly unlink: (path: string) => Promise<void>;
  /** Writes a file that appears whole. */
  readonly write: (path: string, text: string) => Promise<void>;
  /** Removes a folder with all that is in it; links are removed, not followed. */
  readonly remove: (path: string) => Promise<void>;
}

/** The calls themselves, with some of them replaced. */
export function storeSteps(changed: Partial<StoreSteps> = {}): StoreSteps {
  return {
    rename,
    sync: syncPath,
    link,
    unlink,
    write: writeFileDurably,
    remove: (path) => rm(path, { recursive: true, force: true }),
    ...changed,
  };
}
