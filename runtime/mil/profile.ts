import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MilError } from '../errors.js';
import { loadMlmodelc } from './session.js';
import type { Translation } from './translate.js';

export interface ProfileOptions {
  /** Folder for the profile while it is read; default: the system's for temporary files. Nothing is left there. */
  readonly temp?: string;
  readonly threads?: number;
  readonly fuse?: boolean;
}

/** One node as it ran: the MIL operations it computed are those whose first output is in `covers`. */
export interface ProfiledNode {
  readonly name: string;
  /** ONNX operator. */
  readonly op: string;
  readonly provider: string;
  readonly device: string;
  readonly covers: readonly string[];
}

/** Where each operation of a program ran. */
export interface ProfileReport {
  /** Nodes in the order they ran. */
  readonly nodes: readonly ProfiledNode[];
  /** MIL operations, constants apart, counted by the device that computed them. */
  readonly devices: Readonly<Record<string, number>>;
  /** Nodes counted by execution provider. */
  readonly providers: Readonly<Record<string, number>>;
  /** Changes of device from one node to the next. */
  readonly transitions: number;
  /** How often each operation occurs in the MIL program, constants included. */
  readonly operations: Readonly<Record<string, number>>;
  /** MIL operations that needed no node: renamings, and results nobody reads. */
  readonly folded: number;
}

/** Devices by ONNX Runtime's names of execution providers; an unknown provider is its own device. */
const DEVICES: Readonly<Record<string, string>> = { CPUExecutionProvider: 'cpu' };

interface Event {
  readonly cat?: string;
  readonly name?: string;
  readonly args?: { readonly op_name?: string; readonly provider?: string };
}

/** Node events of a profile are named `<node>_kernel_time`. */
const KERNEL = '_kernel_time';

function profiledNodes(events: readonly Event[], translation: Translation): ProfiledNode[] {
  return events.flatMap(({ cat, name = '', args }) => {
    if (cat !== 'Node' || !name.endsWith(KERNEL) || !args?.op_name || !args.provider) return [];
    const node = name.slice(0, -KERNEL.length);
    const { op_name: op, provider } = args;
    const device = DEVICES[provider] ?? provider;
    return [{ name: node, op, provider, device, covers: translation.coverage.get(node) ?? [] }];
  });
}

function counted(values: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return Object.fromEntries(counts);
}

function report(nodes: readonly ProfiledNode[], translation: Translation): ProfileReport {
  const where = new Map<string, string>();
  for (const node of nodes) for (const name of node.covers) where.set(name, node.device);
  const placed = translation.computed.flatMap(({ name }) => where.get(name) ?? []);
  return {
    nodes,
    devices: counted(placed),
    providers: counted(nodes.map((node) => node.provider)),
    transitions: nodes.filter((node, i) => i > 0 && node.device !== nodes[i - 1]?.device).length,
    operations: translation.operations,
    folded: translation.computed.length - placed.length,
  };
}

async function readProfile(folder: string): Promise<Event[]> {
  const [file] = await readdir(folder);
  const events: unknown = file === undefined ? undefined : JSON.parse(await readFile(join(folder, file), 'utf8'));
  if (Array.isArray(events)) return events as Event[];
  throw new MilError('MIL_RUN', 'ONNX Runtime wrote no profile', { expected: 'a list of events', where: folder });
}

/**
 * Runs a model once and reports which device and provider computed each of its operations.
 *
 * @throws MilError as `openMlmodelc` and `run`; `MIL_RUN` when a node did not run or no profile was written.
 */
export async function profileRun(
  dir: string,
  inputs: Record<string, Float32Array>,
  options: ProfileOptions = {},
): Promise<ProfileReport> {
  const { temp = tmpdir(), ...rest } = options;
  const folder = await mkdtemp(join(temp, 'profile-'));
  try {
    const model = await loadMlmodelc(dir, { ...rest, profilePrefix: join(folder, 'run') });
    try {
      await model.run(inputs);
      model.endProfiling();
    } finally {
      await model.release();
    }
    const nodes = profiledNodes(await readProfile(folder), model.translation);
    const ran = new Set(nodes.map(({ name }) => name));
    const missing = model.translation.nodes.find(({ name }) => !ran.has(name));
    if (missing) throw new MilError('MIL_RUN', `the profile lacks node ${missing.name}`, { where: missing.name });
    return report(nodes, model.translation);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
