import { brokenProtocol } from './errors.js';
import { type ComputeUnits, Fields } from './records.js';

/** What a machine is (docs/probe-protocol.md §2.1). */
export interface DeviceReport {
  readonly architecture: string;
  readonly soc: string | null;
  readonly system: { readonly name: string; readonly version: string; readonly build: string | null };
  readonly memoryBytes: number;
  readonly computeDevices: readonly { readonly kind: string; readonly cores: number | null }[];
}

export interface CompileReport {
  readonly model: string;
  readonly files: number;
  readonly bytes: number;
  readonly seconds: number;
}

export interface PlannedOperation {
  readonly name: string;
  readonly operator: string;
  /** `ane`, `cpu`, `gpu`, `unknown` or `none`. */
  readonly preferred: string;
  readonly supported: readonly string[];
  readonly cost: number | null;
}

/** Where operations would run (§2.3). */
export interface PlanReport {
  readonly units: ComputeUnits;
  readonly operations: readonly PlannedOperation[];
  readonly constants: number;
  readonly devices: Readonly<Record<string, number>>;
  /** Known cost weights by preferred device. */
  readonly cost: Readonly<Record<string, number>>;
  readonly transitions: number;
  /** Operations that don't prefer the Neural Engine, by operator. */
  readonly offAne: Readonly<Record<string, number>>;
}

export interface PredictReport {
  readonly units: ComputeUnits;
  readonly outputs: readonly { readonly name: string; readonly shape: readonly number[]; readonly fp16: Buffer }[];
  readonly seconds: { readonly load: number; readonly first: number; readonly median: number | null };
  readonly repeatedEqual: boolean;
}

export function readDevice(fields: Fields): DeviceReport {
  const system = fields.object('system');
  return {
    architecture: fields.text('architecture'),
    soc: fields.optionalText('soc'),
    system: { name: system.text('name'), version: system.text('version'), build: system.optionalText('build') },
    memoryBytes: fields.whole('memory_bytes'),
    computeDevices: fields.list('compute_devices', (item, where) => {
      const device = new Fields(item, where);
      return { kind: device.text('kind'), cores: device.has('cores') ? device.whole('cores') : null };
    }),
  };
}

export function readCompile(fields: Fields, target: string): CompileReport {
  const model = fields.text('model');
  if (model !== target) throw brokenProtocol('compile.model', target, model);
  return { model, files: fields.whole('files', 1), bytes: fields.whole('bytes', 1), seconds: fields.number('seconds') };
}

/** The figures are counted again from the operations; ones that contradict them are refused. */
export function readPlan(fields: Fields, units: ComputeUnits): PlanReport {
  requireUnits(fields, units);
  const operations = fields.list('operations', readOperation);
  const counted = countPlan(operations);
  const number = (one: Fields, key: string): number => one.whole(key);
  const told = {
    counted: fields.whole('counted'),
    devices: fields.table('devices', number),
    transitions: fields.whole('transitions'),
    offAne: fields.table('off_ane', number),
  };
  const [expected, found] = [stable({ counted: operations.length, ...counted }), stable(told)];
  if (expected !== found) throw brokenProtocol('plan', expected, found);
  const cost = fields.table('cost', (one, key) => one.number(key));
  return { units, operations, constants: fields.whole('constants'), cost, ...counted };
}

function countPlan(operations: readonly PlannedOperation[]): Pick<PlanReport, 'devices' | 'transitions' | 'offAne'> {
  const [devices, offAne] = [new Map<string, number>(), new Map<string, number>()];
  let transitions = 0;
  for (const [index, { operator, preferred }] of operations.entries()) {
    devices.set(preferred, (devices.get(preferred) ?? 0) + 1);
    if (preferred !== 'ane') offAne.set(operator, (offAne.get(operator) ?? 0) + 1);
    if (index > 0 && operations[index - 1]!.preferred !== preferred) transitions += 1;
  }
  return { devices: Object.fromEntries(devices), transitions, offAne: Object.fromEntries(offAne) };
}

function readOperation(item: unknown, where: string): PlannedOperation {
  const fields = new Fields(item, where);
  return {
    name: fields.text('name'),
    operator: fields.text('operator'),
    preferred: fields.text('preferred'),
    supported: fields.list('supported', (device) => String(device)),
    cost: fields.has('cost') ? fields.number('cost') : null,
  };
}

export function readPredict(fields: Fields, units: ComputeUnits): PredictReport {
  requireUnits(fields, units);
  const seconds = fields.object('seconds');
  return {
    units,
    outputs: fields.list('outputs', (item, where) => {
      const output = new Fields(item, where);
      const shape = output.list('shape', Number);
      const fp16 = Buffer.from(output.text('fp16'), 'base64');
      const bytes = shape.reduce((product, dimension) => product * dimension, 2);
      if (fp16.length !== bytes) throw brokenProtocol(`${where}.fp16`, `${bytes} bytes`, fp16.length);
      return { name: output.text('name'), shape, fp16 };
    }),
    seconds: {
      load: seconds.number('load'),
      first: seconds.number('first'),
      median: seconds.has('median') ? seconds.number('median') : null,
    },
    repeatedEqual: fields.flag('repeated_equal'),
  };
}

/** A report about other units than asked for is no answer (fault B08). */
function requireUnits(fields: Fields, units: ComputeUnits): void {
  if (fields.text('units') !== units) throw brokenProtocol('units', units, fields.text('units'));
}

/** The same text for the same figures, whatever the order of keys. */
function stable(value: Record<string, unknown>): string {
  return JSON.stringify(value, (_, one: unknown) =>
    typeof one === 'object' && one !== null
      ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );
}
