import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach } from '@jest/globals';
import { LayaError } from '../schemas/errors.js';

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

/** Writes files below a folder, making parents. */
export async function writeTree(root: string, files: Readonly<Record<string, string | Uint8Array>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
  }
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
