import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach } from '@jest/globals';

/** The checkpoint that ships with the project. */
export const TINY = resolve('models/laya-tiny');

const made: string[] = [];

/** An empty folder that is removed after the test. Call only where `afterEach` may run. */
export async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'checkpoint-'));
  made.push(folder);
  return folder;
}

afterEach(async () => {
  for (const folder of made.splice(0)) await rm(folder, { recursive: true, force: true });
});

/** A copy of laya-tiny to damage; its weights are a link, so replace them, never write into them. */
export async function copyTiny(): Promise<string> {
  const root = await newFolder();
  await cp(TINY, root, { recursive: true, filter: (path) => !path.endsWith('model.safetensors') });
  await symlink(join(TINY, 'model.safetensors'), join(root, 'model.safetensors'));
  return root;
}

export type Json = Record<string, unknown>;

/** Rewrites a JSON file with what `edit` leaves or returns. */
export async function editJson(path: string, edit: (value: Json) => unknown): Promise<void> {
  const value = JSON.parse(await readFile(path, 'utf8')) as Json;
  await writeFile(path, JSON.stringify(edit(value) ?? value));
}
