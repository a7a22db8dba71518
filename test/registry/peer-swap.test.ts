import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { artifactFolder, lockPath } from '../../registry/paths.js';
import { bundle, ended, startChild } from '../child.js';
import { workspace } from '../workspace.js';
import { FILES, KEY, writeArtifact } from './artifact.js';
import { served } from './operations.js';

const folder = workspace();
const CHILD = bundle('registry/children/stress.ts');
const SCRIPT = fileURLToPath(new URL('peer_swap.py', import.meta.url));
const ROUNDS = 40;

// Both sides write into one cache. Where we can't take the other side's lock, the renames decide alone: each side may
// find the place taken, no reader ever finds nothing or half of something.
it('shares a cache with the Python runtime, and loses nothing to it', async () => {
  const [root, other] = [folder(), folder()];
  await writeArtifact(artifactFolder(root, KEY));
  await writeArtifact(join(other, 'template'), { ...FILES, 'model.mil': 'python' });
  const args = [root, artifactFolder(root, KEY), join(other, 'template'), lockPath(root, KEY), String(ROUNDS)];
  const peer = ended(spawn('python3', ['-I', SCRIPT, ...args]));
  const roles = ['force', 'rude', 'verify', 'load', 'read', 'quarantine'];
  const ours = await Promise.all(roles.map((role) => ended(startChild(CHILD, [root, role, '15']))));
  const { stdout, stderr } = await peer;
  expect(stderr).toBe('');
  const { replaced, failed } = JSON.parse(stdout);
  expect(replaced + failed).toBe(ROUNDS);
  expect(replaced).toBeGreaterThan(0);
  const lines = ours.map((result) => result.stdout.trim());
  expect(lines).toEqual(roles.map((role) => JSON.stringify({ role, rounds: 15 })));
  expect(await served(root)).toMatch(/^(python|\d+ \d+)$/);
  // Its record of who held the lock last is its own.
  expect(JSON.parse(await readFile(lockPath(root, KEY), 'utf8'))).toEqual({
    pid: expect.any(Number),
    since: expect.any(String),
  });
});
