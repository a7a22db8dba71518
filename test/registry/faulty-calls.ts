import fs from 'node:fs';
import { open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Called before each call of the file system, with its name. May throw in its place. */
export type Watch = (name: string) => void;

type Table = Record<string, (...args: unknown[]) => unknown>;

const PROMISES = [
  'link',
  'lstat',
  'mkdir',
  'open',
  'readFile',
  'readdir',
  'rename',
  'rm',
  'stat',
  'unlink',
  'writeFile',
];
const SYNC = ['fstatSync', 'lstatSync', 'openSync', 'readFileSync', 'readdirSync', 'statSync'];
const HANDLE = ['datasync', 'read', 'readFile', 'stat', 'sync', 'write'];

/**
 * Puts a watch before the calls of node:fs that the store makes, in this whole process; gives what takes it away. Jest
 * has module copies of its own, so that this works in child processes only.
 */
export async function watchCalls(watch: Watch): Promise<() => void> {
  const handle = await open(fileURLToPath(import.meta.url));
  await handle.close();
  const undo = [
    replaceAll(fs.promises as unknown as Table, PROMISES, true, watch),
    replaceAll(fs as unknown as Table, SYNC, false, watch),
    replaceAll(Object.getPrototypeOf(handle) as Table, HANDLE, true, watch),
  ];
  syncBuiltinESMExports();
  return () => {
    for (const one of undo) one();
    syncBuiltinESMExports();
  };
}

/** Flushes take long and change nothing that these tests can see: from here on they do nothing, in this process. */
export async function skipFlushes(): Promise<void> {
  const handle = await open(fileURLToPath(import.meta.url));
  await handle.close();
  (Object.getPrototypeOf(handle) as Table).sync = async () => undefined;
}

function replaceAll(table: Table, names: readonly string[], isAsync: boolean, watch: Watch): () => void {
  const real = names.map((name) => [name, table[name]!] as const);
  for (const [name, call] of real)
    table[name] = isAsync
      ? async function (this: unknown, ...args: unknown[]) {
          watch(name);
          return call.apply(this, args);
        }
      : function (this: unknown, ...args: unknown[]) {
          watch(name);
          return call.apply(this, args);
        };
  return () => {
    for (const [name, call] of real) table[name] = call;
  };
}
