import { join } from 'node:path';
import { locateDense, type OpenedDense, requireDense } from '../registry/dense.js';
import { openStampedFolder } from '../registry/file-stamps.js';
import { findModel, type ModelSpec } from '../registry/models.js';
import { packageRoot } from '../registry/package-root.js';
import { artifactRoot, type Environment, hubCache } from '../registry/paths.js';
import type { OpenedArtifact } from '../registry/read.js';
import { type ArtifactSet, openArtifacts, requirePortable } from './artifacts.js';
import { type Calibration, temperatures } from './calibration.js';
import { type Checkpoint, hashFiles, readCheckpoint } from './checkpoint.js';
import { checkPins, checkProvenWith } from './checkpoint-pins.js';
import { type LoadedDense, loadDense } from './dense/load.js';
import { BackendUnavailableError } from './errors.js';
import { HostWeights } from './host.js';
import { type LoadedArtifact, LoadedByKey, loadArtifact } from './load.js';
import type { GraphChoice, Runnable } from './plan.js';
import { DeviceQueue } from './queue.js';
import { openTokenizer, type PromptTokenizer } from './tokenizer.js';

/** Where rows run. `auto` takes the best device that serves here and records which one and why. */
export type Device = 'auto' | 'cpu' | 'ane' | 'gpu';

export interface OpenOptions {
  readonly device?: Device;
  /** Which graphs may answer; default: `auto`. */
  readonly graph?: GraphChoice;
  /** Requests that may wait while one runs; default: 1,024. More are refused with QUEUE_FULL. */
  readonly queueLimit?: number;
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

/** Everything a model needs to answer; graphs are loaded, and their bytes verified, on first use. */
export interface OpenModel extends Runnable {
  readonly device: 'cpu';
  /** The any-length graph as it was read last; undefined when none is registered or it may not be used. */
  readonly dense: OpenedDense | undefined;
  readonly checkpoint: Checkpoint;
  readonly tokenizer: PromptTokenizer;
  readonly calibration: Calibration;
  readonly host: HostWeights;
  readonly queue: DeviceQueue;
  load(bucket: number): Promise<LoadedArtifact>;
  loadDense(): Promise<LoadedDense>;
  /** Ends what runs and waits, then releases everything. */
  close(): Promise<void>;
}

const QUEUE_LIMIT = 1024;

/**
 * Opens a model: what is registered of it, the checkpoint that was proven with, tokenizer and host weights.
 * Throws UnsupportedModelError, BackendUnavailableError, Artifact*Error, CheckpointError.
 */
export async function openModel(name: string, options: OpenOptions = {}): Promise<OpenModel> {
  const spec = findModel(name);
  const { device = 'auto', env = process.env, graph = 'auto', now = Date.now } = options;
  requireDevice(device);
  const root = options.root ?? artifactRoot(env);
  const dense = await findDense(root, spec, graph);
  const artifacts = await openArtifacts(root, spec, dense !== undefined);
  const checkpoint = await readCheckpoint(options.checkpoint ?? checkpointFolder(spec, env));
  const tokenizer = openTokenizer(join(checkpoint.root, 'tokenizer'));
  const files = await checkpointDigests(checkpoint, root, now);
  checkPins(spec, files, checkpoint.root);
  const accept = (artifact: OpenedArtifact): void => {
    requirePortable(artifact);
    checkProvenWith(artifact, files);
  };
  const acceptDense = (one: OpenedDense): void => checkProvenWith(one, files);
  for (const artifact of artifacts.values()) accept(artifact);
  if (dense) acceptDense(dense);
  const host = await HostWeights.open(checkpoint);
  const { threads } = options;
  const loaded = new LoadedByKey(
    async (bucket: number) => {
      const one = await loadArtifact(root, { model: spec, bucket }, { threads, now, accept });
      artifacts.set(bucket, one.artifact);
      return one;
    },
    ({ executable }) => executable.release(),
  );
  const loadedDense = new LoadedByKey(
    (_: 'any') => loadDense(root, spec, { threads, now, accept: acceptDense }),
    ({ session }) => session.release(),
  );
  const queue = new DeviceQueue(options.queueLimit ?? QUEUE_LIMIT);
  return {
    spec,
    device: 'cpu',
    deviceReason: device === 'cpu' ? 'cpu_requested' : 'ane_runtime_unavailable',
    graph,
    hasDense: dense !== undefined,
    dense,
    artifacts,
    checkpoint,
    tokenizer: await tokenizer,
    calibration: temperatures(checkpoint.agent),
    host,
    queue,
    load: (bucket) => loaded.load(bucket),
    loadDense: () => loadedDense.load('any'),
    close: async () => {
      await queue.close();
      await Promise.all([loaded.close(), loadedDense.close()]);
      await host.close();
    },
  };
}

/** The any-length graph where it may answer. Throws ArtifactMissingError when it was asked for and there is none. */
async function findDense(root: string, spec: ModelSpec, graph: GraphChoice): Promise<OpenedDense | undefined> {
  if (graph === 'buckets') return undefined;
  if (graph === 'auto' && (await locateDense(root, spec)) === undefined) return undefined;
  return requireDense(root, spec);
}

async function checkpointDigests(checkpoint: Checkpoint, root: string, now: () => number) {
  const stamped = await openStampedFolder(root, checkpoint.root, now);
  const files = await hashFiles(checkpoint, stamped.digest);
  await stamped.save();
  return files;
}

const UNSERVED: Readonly<Partial<Record<Device, string>>> = {
  ane: 'the Neural Engine can not be used from here yet',
  gpu: 'no GPU can be used from here',
};

function requireDevice(device: Device): void {
  const reason = UNSERVED[device];
  if (reason === undefined) return;
  throw new BackendUnavailableError('DEVICE_UNAVAILABLE', reason, {
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
