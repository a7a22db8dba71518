import { parseJson, toPlain } from '../../schemas/json.js';
import { brokenProtocol, ProbeError, type ProbeErrorCode, REPORTED_CODES } from './errors.js';
import type { ProbeTensor } from './tensors.js';

/** The version of docs/probe-protocol.md that is spoken here. */
export const PROTOCOL = 1;

/** Compute units by Core ML's names. */
export type ComputeUnits = 'cpuAndNeuralEngine' | 'cpuOnly' | 'cpuAndGPU' | 'all';

/** What computes behind a probe (§3). Only `apple` gives Apple evidence. */
export type CoreMlKind = 'apple' | 'stub' | 'none' | 'simulated';

const CORE_ML_KINDS: readonly string[] = ['apple', 'stub', 'none', 'simulated'] satisfies CoreMlKind[];

/** What this side takes, whatever a probe allows: bytes of a payload, requests under way. */
const MOST = { frame: 64 << 20, queue: 64 } as const;

/** Who answers (§3). */
export interface ProbeIdentity {
  readonly name: string;
  readonly version: string;
  readonly protocol: number;
  readonly coreMl: CoreMlKind;
}

export interface Hello extends ProbeIdentity {
  readonly units: string;
  /** Bytes of a payload, and requests without an answer. */
  readonly limits: { readonly frame: number; readonly queue: number };
}

export interface ReadyModel {
  readonly path: string;
  readonly inputs: readonly ProbeTensor[];
  readonly outputs: readonly ProbeTensor[];
}

/** A JSON object of the probe, read field by field; every other type than asked for breaks the protocol. */
export class Fields {
  readonly #values: Record<string, unknown>;
  readonly #where: string;

  constructor(value: unknown, where: string) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw brokenProtocol(where, 'an object', typeof value);
    }
    this.#values = value as Record<string, unknown>;
    this.#where = where;
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined && this.#values[name] !== null;
  }

  names(): string[] {
    return Object.keys(this.#values);
  }

  text(name: string): string {
    const value = this.#values[name];
    return typeof value === 'string' ? value : this.#refuse(name, 'a string');
  }

  optionalText(name: string): string | null {
    return this.has(name) ? this.text(name) : null;
  }

  number(name: string): number {
    const value = this.#values[name];
    return typeof value === 'number' && value >= 0 ? value : this.#refuse(name, 'a number of at least 0');
  }

  whole(name: string, least = 0): number {
    const value = this.#values[name];
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return value;
    return this.#refuse(name, `a whole number of at least ${least}`);
  }

  flag(name: string): boolean {
    const value = this.#values[name];
    return typeof value === 'boolean' ? value : this.#refuse(name, 'true or false');
  }

  object(name: string): Fields {
    return new Fields(this.#values[name], `${this.#where}.${name}`);
  }

  list<T>(name: string, read: (item: unknown, where: string) => T): T[] {
    const value = this.#values[name];
    if (!Array.isArray(value)) return this.#refuse(name, 'a list');
    return value.map((item, index) => read(item, `${this.#where}.${name}[${index}]`));
  }

  /** Every member of an object by the same reader. */
  table(name: string, read: (fields: Fields, key: string) => number): Record<string, number> {
    const fields = this.object(name);
    return Object.fromEntries(fields.names().map((key) => [key, read(fields, key)]));
  }

  #refuse(name: string, expected: string): never {
    throw brokenProtocol(`${this.#where}.${name}`, expected, this.#values[name]);
  }
}

/** A text as JSON of the probe. Throws ProbeError PROBE_PROTOCOL. */
export function readJson(bytes: Uint8Array | string, where: string): Fields {
  try {
    const text = typeof bytes === 'string' ? bytes : new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return new Fields(toPlain(parseJson(text)), where);
  } catch (error) {
    if (error instanceof ProbeError) throw error;
    throw brokenProtocol(where, 'a JSON object', error instanceof Error ? error.message : error);
  }
}

/** Reads §3. Throws ProbeError PROBE_VERSION, PROBE_NOT_APPLE for one the caller does not accept. */
export function readIdentity(fields: Fields, accept: readonly CoreMlKind[]): ProbeIdentity {
  const protocol = fields.whole('protocol');
  const version = fields.text('version');
  if (protocol !== PROTOCOL) {
    throw new ProbeError('PROBE_VERSION', `laya-probe ${version} speaks protocol ${protocol}`, {
      expected: PROTOCOL,
      found: protocol,
      hint: 'build laya-probe again, from the sources of this release',
    });
  }
  const coreMl = fields.text('core_ml') as CoreMlKind;
  if (!CORE_ML_KINDS.includes(coreMl) || !accept.includes(coreMl)) {
    throw new ProbeError('PROBE_NOT_APPLE', `behind this laya-probe computes: ${coreMl}`, {
      expected: accept,
      found: coreMl,
      hint: 'build laya-probe on macOS',
    });
  }
  return { name: fields.text('name'), version, protocol, coreMl };
}

/** Reads HELLO. Throws what `readIdentity` throws, and PROBE_NOT_APPLE when the units are not those asked for (B08). */
export function readHello(payload: Uint8Array, units: ComputeUnits, accept: readonly CoreMlKind[]): Hello {
  const fields = readJson(payload, 'HELLO');
  const identity = readIdentity(fields, accept);
  if (fields.text('units') !== units) {
    throw new ProbeError('PROBE_NOT_APPLE', 'the probe uses other compute units than asked for', {
      expected: units,
      found: fields.text('units'),
    });
  }
  const told = fields.object('limits');
  const limits = { frame: told.whole('frame', 64), queue: told.whole('queue', 1) };
  const bounded = { frame: Math.min(limits.frame, MOST.frame), queue: Math.min(limits.queue, MOST.queue) };
  return { ...identity, units, limits: bounded };
}

/** Reads READY: the models asked for, in their order. Throws ProbeError PROBE_PROTOCOL. */
export function readReady(payload: Uint8Array, paths: readonly string[]): ReadyModel[] {
  const models = readJson(payload, 'READY').list('models', (item, where) => {
    const model = new Fields(item, where);
    return { path: model.text('path'), inputs: model.list('inputs', tensor), outputs: model.list('outputs', tensor) };
  });
  const found = models.map(({ path }) => path);
  if (JSON.stringify(found) !== JSON.stringify(paths)) throw brokenProtocol('READY', JSON.stringify(paths), found);
  return models;
}

function tensor(item: unknown, where: string): ProbeTensor {
  const fields = new Fields(item, where);
  const shape = fields.list('shape', (dimension, place) => {
    if (typeof dimension === 'number' && Number.isSafeInteger(dimension) && dimension > 0) return dimension;
    throw brokenProtocol(place, 'a whole number above 0', dimension);
  });
  if (shape.length === 0) throw brokenProtocol(where, 'at least one dimension', 'none');
  return { name: fields.text('name'), shape };
}

/** An error that the probe reported, under its own code if this release knows it. */
export function readError(fields: Fields): ProbeError {
  const code = fields.text('code');
  const [where, hint] = [fields.optionalText('where'), fields.optionalText('hint')];
  const known = REPORTED_CODES.some((one) => one === code);
  return new ProbeError(known ? (code as ProbeErrorCode) : 'PROBE_REPORTED', fields.text('message'), {
    ...(known ? {} : { found: code }),
    ...(where === null ? {} : { where }),
    ...(hint === null ? {} : { hint }),
  });
}
