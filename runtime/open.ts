import { join } from 'node:path';
import { locateDense, type OpenedDense, requireDense } from '../registry/dense.js';
import { openStampedFolder } from '../registry/file-stamps.js';
import { findModel, type ModelSpec } from '../registry/models.js';
import { packageRoot } from '../registry/package-root.js';
import { artifactRoot, type Environment, hubCache } from '../registry/paths.js';
import type { AneDevice } from './ane/device.js';
import type { ProbeSettings } from './ane/program.js';
import type { AneProgram } from './ane/session.js';
import { type ArtifactSet, artifactsOf, readArtifacts, refuseDevice } from './artifacts.js';
import { type Calibration, temperatures } from './calibration.js';
import { type Checkpoint, hashFiles, readCheckpoint } from './checkpoint.js';
import { checkPins, checkProvenWith } from './checkpoint-pins.js';
import { type CpuGraphs, openCpuGraphs } from './cpu.js';
import { BackendUnavailableError } from './errors.js';
import { forwardRow, shortestRow } from './forward.js';
import { HostWeights } from './host.js';
import type { LoadedArtifact } from './load.js';
import { type AneView, type Device, type GraphChoice, type Runnable, servesCpu } from './plan.js';
import { DeviceQueue } from './queue.js';
import { openTokenizer, type PromptTokenizer } from './tokenizer.js';

export interface OpenOptions {
  readonly device?: Device;
  /** Which graphs may answer; default: `auto`. */
  readonly graph?: GraphChoice;
  /** laya-probe for the Neural Engine: its path, or more of it; default: the one in the tools cache, on a Mac. */
  readonly probe?: string | ProbeSettings;
  /**
   * Whether `auto` waits for the Neural Engine when it opens; default: `wait`. In the `background` it answers on the
   * cpu until then, with the reason `ane_starting`.
   */
  readonly aneStartup?: 'wait' | 'background';
  /** Told once, when laya-probe is lost; default: `process.emitWarning`. It must not throw. */
  readonly onWarning?: (message: string) => void;
  /** Requests that may wait on a device while one runs; default: 1,024. More are refused with QUEUE_FULL. */
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

/** Everything a model needs to answer. */
export interface OpenModel extends Runnable {
  readonly checkpoint: Checkpoint;
  readonly tokenizer: PromptTokenizer;
  readonly calibration: Calibration;
  readonly host: HostWeights;
  readonly cpu: CpuGraphs;
  /** A bucket of the cpu. */
  load(bucket: number): Promise<LoadedArtifact>;
  readonly loads: { readonly cpu: DeviceQueue; readonly ane: DeviceQueue };
  /** Undefined where the Neural Engine is not wanted or can't serve. */
  readonly aneDevice: AneDevice | undefined;
  /** Ends what runs and waits, then releases everything. */
  close(): Promise<void>;
}

const QUEUE_LIMIT = 1024;

/**
 * Opens a model: what is registered of it, the checkpoint that was proven with, tokenizer and host weights, and the
 * Neural Engine where it is wanted and may serve.
 * Throws UnsupportedModelError, BackendUnavailableError, Artifact*Error, ComputeUnitMismatchError, CheckpointError.
 */
export async function openModel(name: string, options: OpenOptions = {}): Promise<OpenModel> {
  const spec = findModel(name);
  const { device = 'auto', env = process.env, graph = 'auto', now = Date.now, queueLimit = QUEUE_LIMIT } = options;
  requireDevice(device, graph);
  const root = options.root ?? artifactRoot(env);
  const program = await programFor(device, graph, options, env);
  const dense = device === 'ane' ? undefined : await findDense(root, spec, graph);
  const registered = await readArtifacts(root, spec);
  const apple = artifactsOf('apple', program === undefined ? new Map() : registered);
  const usable = device === 'ane' ? new Map() : registered;
  const hasCpu = servesCpu({ hasDense: dense !== undefined, artifacts: artifactsOf('portable', usable) });
  if (!hasCpu && apple.size === 0) await refuseDevice(root, spec, registered, device === 'ane' ? 'apple' : 'portable');

  const checkpoint = await readCheckpoint(options.checkpoint ?? checkpointFolder(spec, env));
  const opening = openTokenizer(join(checkpoint.root, 'tokenizer'));
  // What it throws counts when its turn comes.
  opening.catch(() => undefined);
  const files = await checkpointDigests(checkpoint, root, now);
  checkPins(spec, files, checkpoint.root);
  const cpu = openCpuGraphs({ root, spec, registered: usable, dense, files, threads: options.threads, now });
  const tokenizer = await opening;
  const host = await HostWeights.open(checkpoint);
  const release = async (): Promise<void> => {
    await Promise.all([cpu.release(), host.close()]);
  };
  const isOnlyDevice = device === 'ane' || !hasCpu;
  const { onWarning: warn = emitWarning, aneStartup = 'wait' } = options;
  const row = shortestRow(tokenizer);
  const openAne = async (found: AneProgram): Promise<AneDevice> =>
    (await import('./ane/open.js')).openAneDevice({
      ...{ root, spec, program: found, now, warn, startup: isOnlyDevice ? 'required' : aneStartup },
      accept: (artifact) => checkProvenWith(artifact, files),
      warm: (bucket, executable) => forwardRow({ host, executable, bucket, padId: tokenizer.pad.id }, row),
    });
  const aneDevice = apple.size === 0 ? undefined : await openAne(program!).catch(afterwards(release));
  const loads = { cpu: new DeviceQueue(queueLimit), ane: new DeviceQueue(queueLimit) };
  return {
    ...{ spec, device, graph, hasDense: dense !== undefined, artifacts: cpu.artifacts, checkpoint, tokenizer, host },
    ...{ cpu, loads, aneDevice, load: cpu.load },
    ane: viewOf(aneDevice, apple, program === undefined),
    calibration: temperatures(checkpoint.agent),
    close: async () => {
      await Promise.all([loads.cpu.close(), loads.ane.close()]);
      await aneDevice?.close();
      await release();
    },
  };
}

const emitWarning = (message: string): void => process.emitWarning(message, { type: 'LayaWarning', code: 'ANE_LOST' });

/** Throws the error on once a step was done. */
const afterwards =
  (step: () => Promise<void>) =>
  async (error: unknown): Promise<never> => {
    await step();
    throw error;
  };

/** The Neural Engine as plans see it: what serves now, or why nothing does. */
function viewOf(device: AneDevice | undefined, apple: ArtifactSet, hasNoProgram: boolean): AneView {
  if (!device) {
    return { absence: hasNoProgram ? 'ane_runtime_unavailable' : 'ane_artifact_unavailable', artifacts: apple };
  }
  return {
    get absence() {
      return device.absence;
    },
    get artifacts() {
      const { current } = device;
      return current ? new Map(Array.from(current.models, ([bucket, { artifact }]) => [bucket, artifact])) : apple;
    },
  };
}

/** laya-probe where the Neural Engine is wanted. Throws BackendUnavailableError for `ane` where there is none. */
async function programFor(device: Device, graph: GraphChoice, { probe }: OpenOptions, env: Environment) {
  if (device === 'cpu' || graph === 'any-length') return undefined;
  const { findProgram } = await import('./ane/program.js');
  try {
    return await findProgram(probe, env);
  } catch (error) {
    if (device === 'auto' && error instanceof BackendUnavailableError) return undefined;
    throw error;
  }
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

/** Throws BackendUnavailableError for what no machine has here. */
function requireDevice(device: Device, graph: GraphChoice): void {
  if (device === 'gpu')
    throw new BackendUnavailableError('DEVICE_UNAVAILABLE', 'no GPU is used by this release', {
      where: 'device',
      expected: ['auto', 'cpu', 'ane'],
      found: device,
      hint: 'use --device auto',
    });
  if (device === 'ane' && graph === 'any-length')
    throw new BackendUnavailableError('DEVICE_UNAVAILABLE', 'the any-length graph runs on the cpu alone', {
      where: 'graph',
      expected: ['auto', 'buckets'],
      found: graph,
      hint: 'use --graph buckets, or --device cpu',
    });
}

/** The bundled folder, or the pinned revision's snapshot in the hub cache. */
function checkpointFolder(spec: ModelSpec, env: Environment): string {
  if (spec.bundled) return join(packageRoot(), 'models', spec.name);
  return join(hubCache(env), `models--${spec.repo.replace('/', '--')}`, 'snapshots', spec.revision);
}
