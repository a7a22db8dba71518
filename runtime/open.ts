import { join } from 'node:path';
import { openStampedFolder } from '../registry/file-stamps.js';
import { findModel, type ModelSpec } from '../registry/models.js';
import { packageRoot } from '../registry/package-root.js';
import { artifactRoot, type Environment, hubCache } from '../registry/paths.js';
import type { OpenedArtifact } from '../registry/read.js';
import { type ArtifactSet, openArtifacts, requirePortable } from './artifacts.js';
import { type Calibration, temperatures } from './calibration.js';
import { type Checkpoint, hashFiles, readCheckpoint } from './checkpoint.js';
import { checkPins, checkProvenWith } from './checkpoint-pins.js';
import { BackendUnavailableError } from './errors.js';
import { HostWeights } from './host.js';
import { ArtifactLoader, type LoadedArtifact, loadArtifact } from './load.js';
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
  /** The clock, in milliseconds since 1970. */
  readonly now?: () => number;
}

/** Everything a model needs to answer; artifacts are loaded, and their bytes verified, on first use. */
export interface OpenModel {
  readonly spec: ModelSpec;
  readonly device: 'cpu';
  readonly routingReason: 'cpu_requested' | 'ane_runtime_unavailable';
  /** By bucket, as they were read last: an artifact that was replaced since is read again when it is opened. */
  readonly artifacts: ArtifactSet;
  readonly checkpoint: Checkpoint;
  readonly tokenizer: PromptTokenizer;
  readonly calibration: Calibration;
  readonly host: HostWeights;
  load(bucket: number): Promise<LoadedArtifact>;
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
  const now = options.now ?? Date.now;
  const files = await checkpointDigests(checkpoint, root, now);
  checkPins(spec, files, checkpoint.root);
  const accept = (artifact: OpenedArtifact): void => {
    requirePortable(artifact);
    checkProvenWith(artifact, files);
  };
  for (const artifact of artifacts.values()) accept(artifact);
  const host = await HostWeights.open(checkpoint);
  const loader = new ArtifactLoader(async (bucket) => {
    const loaded = await loadArtifact(root, { model: spec, bucket }, { threads: options.threads, now, accept });
    artifacts.set(bucket, loaded.artifact);
    return loaded;
  });
  return {
    spec,
    device: 'cpu',
    routingReason: device === 'cpu' ? 'cpu_requested' : 'ane_runtime_unavailable',
    artifacts,
    checkpoint,
    tokenizer: await tokenizer,
    calibration: temperatures(checkpoint.agent),
    host,
    load: (bucket) => loader.load(bucket),
    close: async () => {
      await loader.close();
      await host.close();
    },
  };
}

async function checkpointDigests(checkpoint: Checkpoint, root: string, now: () => number) {
  const stamped = await openStampedFolder(root, checkpoint.root, now);
  const files = await hashFiles(checkpoint, stamped.digest);
  await stamped.save();
  return files;
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
