// Runs an operation again and again, each time with another call of the file system failing: node calls.mjs FOLDER
// OPERATION CODE. Prints what must not be, and how many calls there were.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ARCHIVE_OPERATIONS, sumsFit } from '../archive-operations.js';
import { skipFlushes, watchCalls } from '../faulty-calls.js';
import { OPERATIONS, served, wholeCopies } from '../operations.js';

const [folder, name, code] = process.argv.slice(2) as [string, string, string];
const { prepare, run, serves, keeps } = { ...OPERATIONS, ...ARCHIVE_OPERATIONS }[name]!;

/** Runs the operation with one call failing; gives the call's name, undefined when there were fewer calls. */
async function runWithout(root: string, failing: number): Promise<string | undefined> {
  let count = 0;
  let failed: string | undefined;
  const restore = await watchCalls((call) => {
    if (count++ !== failing) return;
    failed = call;
    throw Object.assign(new Error(`${code}: ${call}`), { code });
  });
  try {
    await run(root, {});
  } catch {
    // That it fails is right; what it leaves is looked at.
  } finally {
    restore();
  }
  return failed;
}

await skipFlushes();
for (let call = 0; ; call++) {
  const root = join(folder, String(call));
  mkdirSync(root);
  await prepare(root);
  const failed = await runWithout(root, call);
  const found = await served(root);
  const isLost = keeps && (await wholeCopies(root)) === 0;
  const isFalse = !(await sumsFit(root));
  if (!serves.includes(found) || isLost || isFalse) report({ call, failed, found, isLost, isFalse });
  rmSync(root, { recursive: true });
  if (failed !== undefined) continue;
  report({ calls: call });
  break;
}

function report(record: object): void {
  process.stdout.write(`${JSON.stringify(record)}\n`);
}
