import { join } from 'node:path';
import { findModel, type ModelSpec } from '../registry/models.js';
import { packageRoot } from '../registry/package-root.js';
import { artifactRoot, type Environment, hubCache, verifiedFolder } from '../registry/paths.js';
import { verifyTree } from '../registry/read.js';
import { type ArtifactSet, openArtifacts } from './artifacts.js';
import { type Calibration, temperatures } from './calibration.js';
import { type Checkpoint, hashFiles, readCheckpoint } from './checkpoint.js';
import { checkPins, checkProvenWith } from './checkpoint-pins.js';
import { BackendUnavailableError } from './errors.js';
import type { Executable } from './executor.js';
import { HostWeights } from './host.js';
import { openTokenizer, type PromptTokenizer } from './tokenizer.js';

/** Where rows run. `auto` takes the best device that serves here and records which one and why. */
export type Device = 'auto' | 'cpu' | 'ane';

export interface OpenOptions {
  readonly device?: Device;
  /** Root of the artifact store; default: as the environment says. */
  readonly root?: string;
  /** Checkpoint folder with the pinned weights; default: the bundled one, or the hub cache's. */
  readonly checkpoint?: string;
  /** Threads of the executor; default: the processors this process may use. */
  readonly threads?: number;
  readonly env?: Environment;
}

/** Everything a model needs to answer; executables are opened, and their bytes verified, on first use. */
export interface OpenModel {
  readonly spec: ModelSpec;
  readonly device: 'cpu';
  readonly routingReason: 'cpu_requested' | 'ane_runtime_unavailable';
  readonly artifacts: ArtifactSet;
  readonly checkpoint: Checkpoint;
  readonly tokenizer: PromptTokenizer;
  readonly calibration: Calibration;
  readonly host: HostWeights;
  executable(bucket: number): Promise<Executable>;
  close(): Promise<void>;
}

/**
 * Opens a model: its registered artifacts, the checkpoint they were proven with, tokenizer and host weights.
 * Throws UnsupportedModelError, BackendUnavailableError, Artifact*Error, CheckpointError.
 */
export async function openModel(name: string, options: OpenOptions = {}): Promise<OpenModel> {
  const spec = findModel(name);
  const { device = 'auto', env = process.env } = options;
  requireDevice(device);
  const root = options.root ?? artifactRoot(env);
  const artifacts = await openArtifacts(root, spec);
  const checkpoint = await readCheckpoint(options.checkpoint ?? checkpointFolder(spec, env));
  const tokenizer = openTokenizer(join(checkpoint.root, 'tokenizer'));
  const files = await hashFiles(checkpoint);
  checkPins(spec, files, checkpoint.root);
  for (const artifact of artifacts.values()) checkProvenWith(artifact, files);
  const host = await HostWeights.open(checkpoint);
  const executables = new Map<number, Promise<Executable>>();
  return {
    spec,
    device: 'cpu',
    routingReason: device === 'cpu' ? 'cpu_requested' : 'ane_runtime_unavailable',
    artifacts,
    checkpoint,
    tokenizer: await tokenizer,
    calibration: temperatures(checkpoint.agent),
    host,
    executable: (bucket) => {
      const opened = executables.get(bucket) ?? openExecutable(artifacts, bucket, root, options.threads);
      executables.set(bucket, opened);
      return opened;
    },
    close: async () => {
      for (const opened of executables.values()) await opened.then((one) => one.release()).catch(() => undefined);
      await host.close();
    },
  };
}

function requireDevice(device: Device): void {
  if (device !== 'ane') return;
  throw new BackendUnavailableError('DEVICE_UNAVAILABLE', 'the Neural Engine can not be used from here yet', {
    expected: ['auto', 'cpu'],
    found: device,
    hint: 'use --device cpu',
  });
}

/** The bundled folder, or the pinned revision's snapshot in the hub cache. */
function checkpointFolder(spec: ModelSpec, env: Environment): string {
  if (spec.bundled) return join(packageRoot(), 'models', spec.name);
  return join(hubCache(env), `models--${spec.repo.replace('/', '--')}`, 'snapshots', spec.revision);
}

async function openExecutable(artifacts: ArtifactSet, bucket: number, root: string, threads: number | undefined) {
  const artifact = artifacts.get(bucket)!;
  const [{ openMlmodelc }, digest] = await Promise.all([import('./mil/session.js'), verifyTree(artifact)]);
  return openMlmodelc(artifact.model, {
    ...(threads === undefined ? {} : { threads }),
    cache: { dir: join(verifiedFolder(root), 'portable'), key: digest.v2 },
  });
}
