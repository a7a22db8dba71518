import { readdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { expect, it } from '@jest/globals';
import { artifactFolder, quarantineFolder, stagingFolder } from '../../registry/paths.js';
import { executePrune, planPrune } from '../../registry/prune.js';
import { bundle, ended, startChild } from '../child.js';
import { workspace } from '../workspace.js';
import { KEY, writeArtifact } from './artifact.js';
import { served } from './operations.js';

const folder = workspace();
const CHILD = bundle('registry/children/stress.ts');
const ROUNDS = 12;
const ROLES = ['build', 'import', 'rude', 'verify', 'load', 'read', 'quarantine', 'prune'];

const entries = (path: string): Promise<string[]> => readdir(path).catch(() => []);

/** What the processes report that must not happen, and how many rounds they did. */
function readReports(outputs: readonly string[]) {
  const lines = outputs.flatMap((text) => text.trim().split('\n')).filter((line) => line !== '');
  const records = lines.map((line) => JSON.parse(line) as { role: string; rounds?: number });
  return {
    anomalies: records.filter(({ rounds }) => rounds === undefined),
    rounds: records.reduce((sum, { rounds }) => sum + (rounds ?? 0), 0),
  };
}

// R04, R07, R11, R20: at each instant the old artifact or a new one, whole, whoever does what beside.
it('serves a whole artifact to everybody while eight processes build, import, check, load and prune, and some are killed', async () => {
  const root = folder();
  await writeArtifact(artifactFolder(root, KEY));
  await ended(startChild(CHILD, [root, 'archive', '1']));
  const working = ROLES.map((role) => ended(startChild(CHILD, [root, role, String(ROUNDS)])));
  const killed: (string | null)[] = [];
  for (let round = 0; round < 8; round++)
    killed.push((await ended(startChild(CHILD, [root, 'killed', '1', String(round)]))).signal);
  const results = await Promise.all(working);
  expect(results.map(({ stderr }) => stderr)).toEqual(ROLES.map(() => ''));
  const { anomalies, rounds } = readReports(results.map(({ stdout }) => stdout));
  expect(anomalies).toEqual([]);
  expect(rounds).toBe(ROLES.length * ROUNDS);
  expect(killed).toEqual(Array(8).fill('SIGKILL'));

  expect(await served(root)).toMatch(/^(\d+ \d+|program\(1\.3\)\n)$/);
  expect(await entries(quarantineFolder(root))).toEqual([]);
  const rules = { superseded: false, quarantined: false, now: new Date(Date.now() + 7200_000) };
  const { entries: left } = await planPrune(root, rules);
  await executePrune(
    root,
    left.map(({ path }) => path),
    rules,
  );
  expect(await entries(stagingFolder(root))).toEqual([]);
  // Copies that the killed ones kept may stay; nothing else does.
  const beside = (await entries(dirname(artifactFolder(root, KEY)))).filter(
    (name) => !/\.(old|pruning)-\d+/.test(name),
  );
  expect(beside).toEqual(['bc1s-masked-L64-B1']);
});
