import {
  ArtifactIntegrityError,
  ArtifactMissingError,
  ArtifactRevisionError,
  ComputeUnitMismatchError,
} from '../../registry/errors.js';
import { evidenceKind } from '../../registry/evidence.js';
import { generationOf, readWhole } from '../../registry/generation.js';
import type { ModelSpec } from '../../registry/models.js';
import type { OpenedArtifact } from '../../registry/read.js';
import { type CheckedTree, verifyPlaced } from '../../registry/stamps.js';
import type { Executable } from '../executor.js';
import { openProbe, type Probe, type ProbePatience } from '../probe/client.js';
import { type CommandOptions, probeDevice, probePlan } from '../probe/commands.js';
import type { ProbeError } from '../probe/errors.js';
import type { ProbeProgram } from '../probe/process.js';
import type { CoreMlKind } from '../probe/records.js';
import type { PlanReport } from '../probe/reports.js';
import { type MachineProfile, profileOf, requireProfile } from './profile.js';

/** Which laya-probe is started, and what may compute in it. */
export interface AneProgram extends ProbeProgram {
  readonly accept: readonly CoreMlKind[];
  readonly patience: Partial<ProbePatience>;
}

/** One bucket in the probe. */
export interface AneModel {
  readonly artifact: OpenedArtifact;
  readonly executable: Executable;
  /** Whether its bytes and placement were looked at, or a stamp vouched for them. */
  readonly stamp: CheckedTree['stamp'];
}

/** A running laya-probe with every Apple-proven bucket of a model loaded, each of which has answered once. */
export interface AneSession {
  readonly models: ReadonlyMap<number, AneModel>;
  readonly version: string;
  readonly coreMl: CoreMlKind;
  readonly pid: number | undefined;
  /** From the first look at the machine until all buckets had run. */
  readonly seconds: number;
  readonly ended: Promise<ProbeError | null>;
  close(): Promise<void>;
}

export interface AneStartOptions {
  readonly root: string;
  readonly spec: ModelSpec;
  readonly program: AneProgram;
  readonly now: () => number;
  /** Throws for an artifact that was proven with another checkpoint. */
  readonly accept: (artifact: OpenedArtifact) => void;
  /** Runs a bucket once. */
  readonly warm: (bucket: number, executable: Executable) => Promise<unknown>;
}

const UNITS = 'cpuAndNeuralEngine';

/**
 * Starts laya-probe on what is registered now: the machine, manifests, bytes and placement of each bucket (unless a
 * stamp vouches for these), the process, a run of each bucket. Leaves nothing running when it throws: ProbeError,
 * Artifact*Error, ComputeUnitMismatchError, the signal's reason.
 */
export async function startAne(options: AneStartOptions, signal: AbortSignal): Promise<AneSession> {
  const { program } = options;
  const started = performance.now();
  const machine = profileOf(await probeDevice(commandOf(program, signal)));
  const checked = await checkBuckets(machine, options, signal);
  const models = checked.map(({ artifact }) => artifact.model);
  const probe = await openProbe({ ...program, models, units: UNITS, signal });
  try {
    await requireCurrent(checked);
    for (const [index, { artifact }] of checked.entries())
      await options.warm(artifact.key.bucket, probe.models[index]!);
    signal.throwIfAborted();
  } catch (error) {
    await probe.close();
    throw error;
  }
  return sessionOf(probe, checked, (performance.now() - started) / 1000);
}

/** Every bucket that is proven on this kind of machine; at least one. */
async function checkBuckets(
  machine: MachineProfile,
  options: AneStartOptions,
  signal: AbortSignal,
): Promise<readonly Checked[]> {
  const { root, spec } = options;
  const checked: Checked[] = [];
  let foreign: ArtifactRevisionError | undefined;
  for (const bucket of spec.buckets) {
    signal.throwIfAborted();
    try {
      const one = await checkBucket(bucket, machine, options, signal);
      if (one) checked.push(one);
    } catch (error) {
      if (!(error instanceof ArtifactRevisionError) || error.code !== 'PROFILE_MISMATCH') throw error;
      foreign ??= error;
    }
  }
  if (checked.length > 0) return checked;
  throw foreign ?? nothingProven(root, spec);
}

const nothingProven = (where: string, { name }: ModelSpec): ArtifactMissingError =>
  new ArtifactMissingError('ARTIFACT_MISSING', `nothing that is registered of ${name} serves here`, {
    where,
    expected: 'an artifact with Apple evidence of this kind of machine',
    hint: `on this Mac: npm run build-artifacts -- --model ${name}`,
  });

/** A bucket that may be loaded, as it stood when it was checked. */
interface Checked {
  readonly artifact: OpenedArtifact;
  readonly generation: string;
  readonly stamp: CheckedTree['stamp'];
}

/** Undefined where nothing, or an artifact with portable evidence, is registered. */
async function checkBucket(
  bucket: number,
  machine: MachineProfile,
  { root, spec, program, now, accept }: AneStartOptions,
  signal: AbortSignal,
): Promise<Checked | undefined> {
  const macosBuild = buildKey(machine, program);
  const check = async (
    artifact: OpenedArtifact,
    generation: string,
  ): Promise<Omit<Checked, 'artifact'> | undefined> => {
    if (evidenceKind(artifact.manifest) !== 'apple') return undefined;
    requireProfile(artifact, machine);
    accept(artifact);
    const placement = async (): Promise<void> =>
      checkPlacement(artifact, await probePlan(commandOf(program, signal), artifact.model, UNITS));
    const { stamp } = await verifyPlaced(root, artifact, { macosBuild, check: placement }, now);
    return { generation, stamp };
  };
  try {
    const { artifact, value } = await readWhole(root, { model: spec, bucket }, check);
    return value && { artifact, ...value };
  } catch (error) {
    if (error instanceof ArtifactMissingError) return undefined;
    throw error;
  }
}

/** One-shot commands may take as long as a load: Core ML compiles a model for its plan too. */
const commandOf = ({ patience: { load }, ...program }: AneProgram, signal: AbortSignal): CommandOptions => ({
  ...program,
  signal,
  ...(load === undefined ? {} : { patience: load }),
});

/** A stamp of a simulated probe never counts for a Mac's. */
function buildKey({ build }: MachineProfile, { accept }: AneProgram): string | null {
  if (build === null) return null;
  return accept.every((kind) => kind === 'apple') ? build : `${accept.join('+')} ${build}`;
}

/** The compute plan must be what the manifest declares: every operation on the Neural Engine, no transition. */
function checkPlacement({ folder }: OpenedArtifact, { devices, transitions, offAne }: PlanReport): void {
  const elsewhere = Object.entries(devices).filter(([device, count]) => device !== 'ane' && count > 0);
  if ((devices.ane ?? 0) > 0 && elsewhere.length === 0 && transitions === 0) return;
  throw new ComputeUnitMismatchError('PLACEMENT_REFUSED', 'not every operation prefers the Neural Engine any more', {
    where: folder,
    expected: { device: 'ane', transitions: 0 },
    found: { ops: devices, transitions, off_ane: offAne },
    hint: 'build the artifact again on this Mac with --force',
  });
}

/** What was loaded is what was checked. Throws ArtifactIntegrityError TREE_MISMATCH. */
async function requireCurrent(checked: readonly Checked[]): Promise<void> {
  for (const { artifact, generation } of checked) {
    if ((await generationOf(artifact.folder)) === generation) continue;
    throw new ArtifactIntegrityError('TREE_MISMATCH', 'the artifact was replaced while it was opened', {
      where: artifact.folder,
      hint: 'run the command again',
    });
  }
}

function sessionOf(probe: Probe, checked: readonly Checked[], seconds: number): AneSession {
  const models = checked.map(({ artifact, stamp }, i): [number, AneModel] => [
    artifact.key.bucket,
    { artifact, executable: probe.models[i]!, stamp },
  ]);
  return {
    models: new Map(models),
    version: probe.hello.version,
    coreMl: probe.hello.coreMl,
    pid: probe.pid,
    seconds,
    ended: probe.ended,
    close: () => probe.close(),
  };
}
