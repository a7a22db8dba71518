import { spawnSync } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll } from '@jest/globals';
import { recordText } from '../../../registry/durable.js';
import { findModel } from '../../../registry/models.js';
import { artifactFolder, MANIFEST } from '../../../registry/paths.js';
import type { ProbeSettings } from '../../../runtime/ane/program.js';
import { Laya } from '../../../runtime/laya.js';
import type { OpenOptions } from '../../../runtime/open.js';
import type { Manifest } from '../../../schemas/generated/types.js';
import { simulatedProbe } from '../../probe/programs.js';
import type { Switches } from '../../probe/switches.js';
import { registerLayaTiny, registerLayaTinyDense } from '../../registered.js';
import { keptFolder, workspace } from '../../workspace.js';

/** The machine that the simulated probe says it is. */
const HERE = { soc: 'Apple Simulated', macos: '15.1', macos_build: null, coremltools: '9.0' };

/**
 * Rewrites what a manifest of a test's own store says was proven: as if the gates had run on a Mac of this kind. It is
 * a statement about no real artifact, and no store but a test's ever has it.
 */
export async function asIfApple(
  root: string,
  bucket: number,
  platform: Partial<Manifest['platform']> = {},
  keeps: 'apple' | 'both' = 'apple',
) {
  const path = join(artifactFolder(root, { model: findModel('laya-tiny'), bucket }), MANIFEST);
  const manifest = JSON.parse(await readFile(path, 'utf8')) as Manifest;
  const { evidence, placement, platform: before, parity } = manifest;
  if (keeps === 'both') manifest.other_evidence = [{ evidence: evidence!, placement, platform: before, parity }];
  manifest.placement = { ...manifest.placement, compute_units: 'CPU_AND_NE', ops: { ane: 314 }, transitions: 0 };
  manifest.platform = { ...HERE, ...platform };
  manifest.evidence = {
    ...manifest.evidence!,
    kind: 'apple',
    executor: { name: 'simulated', version: '0' },
    profile: 'simulated',
  };
  await writeFile(path, recordText(manifest));
}

/** For a test file: stores with laya-tiny, and ways to open it on the simulated probe. */
export function appleStores() {
  const folder = workspace();
  const store = keptFolder();
  const simulated = simulatedProbe();
  beforeAll(async () => {
    await registerLayaTiny(store(), [64, 96]);
    await registerLayaTinyDense(store());
  }, 240_000);

  const probe = (switches: Partial<Switches> = {}, more: Partial<ProbeSettings> = {}): ProbeSettings => ({
    ...simulated({ models: 'portable', ...switches }),
    ...more,
  });
  return {
    folder,
    probe,
    /** A copy of the store, in which these buckets are as if a Mac had proven them. */
    rooted: async (apple: readonly number[], parts: readonly string[] = ['artifacts', 'portable']): Promise<string> => {
      const root = folder();
      for (const part of parts)
        await cp(join(store(), part, 'laya-tiny'), join(root, part, 'laya-tiny'), { recursive: true });
      for (const bucket of apple) await asIfApple(root, bucket);
      return root;
    },
    open: (root: string, switches: Partial<Switches> = {}, options: OpenOptions = {}): Promise<Laya> =>
      Laya.open('laya-tiny', { root, env: {}, threads: 1, probe: probe(switches), ...options }),
  };
}

export const SHORT = { context: 'I was charged twice.', questions: ['Is this about billing?'] };
export const MANY = { context: 'I was charged twice.', questions: ['Is this about billing?', 'Is it urgent?'] };

/** The process that serves a model now. */
export const pidOf = (laya: Laya): number => laya.info().ane.probe!.pid!;

/** True while a process of this id runs; one that has ended and waits to be collected does not. */
export function isAlive(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', `${pid}`], { encoding: 'utf8' });
  return /^[^Z]/.test(stdout.trim());
}
