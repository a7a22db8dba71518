import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach } from '@jest/globals';
import { LayaError } from '../schemas/errors.js';

export { writeTree } from './files.js';

/** A folder of its own for each call, removed after the test. */
export function workspace(): () => string {
  const made: string[] = [];
  afterEach(() => {
    for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
  });
  return () => {
    const folder = join(tmpdir(), `laya-test-${randomBytes(6).toString('hex')}`);
    mkdirSync(folder);
    made.push(folder);
    return folder;
  };
}

/** One folder for all tests of a file, made on first use and removed after the last. */
export function keptFolder(): () => string {
  let made: string | undefined;
  afterAll(() => {
    if (made !== undefined) rmSync(made, { recursive: true, force: true });
  });
  return () => {
    if (made === undefined) {
      made = join(tmpdir(), `laya-test-${randomBytes(6).toString('hex')}`);
      mkdirSync(made);
    }
    return made;
  };
}

/** Every file and folder below a folder, sorted; folders end in a slash. */
export async function treeOf(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries
    .map((entry) => {
      const path = join(entry.parentPath, entry.name).slice(root.length + 1);
      return entry.isDirectory() ? `${path}/` : path;
    })
    .sort();
}

/** The stable code of the LayaError that a step throws; anything else fails the test. */
export async function codeOf(step: () => unknown): Promise<string> {
  try {
    await step();
  } catch (error) {
    if (error instanceof LayaError) return error.code;
    throw error;
  }
  return 'no error';
}
