import { brokenProtocol, ProbeError } from './errors.js';
import { ProbeProcess, type ProbeProgram } from './process.js';
import {
  type ComputeUnits,
  type CoreMlKind,
  type Fields,
  type ProbeIdentity,
  readError,
  readIdentity,
  readJson,
} from './records.js';
import {
  type CompileReport,
  type DeviceReport,
  type PlanReport,
  type PredictReport,
  readCompile,
  readDevice,
  readPlan,
  readPredict,
} from './reports.js';

/** How one-shot commands run (docs/probe-protocol.md §2). */
export interface CommandOptions extends ProbeProgram {
  /** What may compute; default `apple` only. */
  readonly accept?: readonly CoreMlKind[];
  /** Milliseconds after which the command is killed; default 900 s, for the Neural Engine's own compilation. */
  readonly patience?: number;
  readonly signal?: AbortSignal;
}

const PATIENCE = 900_000;

/** Bound of a document; a plan of 10,000 operations has 2 MB. */
const DOCUMENT_BYTES = 64 << 20;

/** Who this laya-probe is: the first thing to ask, because its failures are the executable's (fault F28). */
export async function probeVersion(options: CommandOptions): Promise<ProbeIdentity> {
  const { fields, exitError } = await document(options, ['version']);
  if (!fields) throw exitError('start');
  return readIdentity(fields.object('probe'), options.accept ?? ['apple']);
}

export async function probeDevice(options: CommandOptions): Promise<DeviceReport> {
  return readDevice(await command(options, ['device']));
}

/** Compiles a package to a folder that must not exist. */
export async function probeCompile(options: CommandOptions, source: string, target: string): Promise<CompileReport> {
  return readCompile(await command(options, ['compile', '--', source, target]), target);
}

export async function probePlan(options: CommandOptions, model: string, units: ComputeUnits): Promise<PlanReport> {
  return readPlan(await command(options, ['plan', '--units', units, '--', model]), units);
}

/** Runs a model on zeros once and `repeat` times more, to time it. */
export async function probePredict(
  options: CommandOptions,
  model: string,
  units: ComputeUnits,
  repeat: number,
): Promise<PredictReport> {
  const args = ['predict', '--units', units, '--repeat', `${repeat}`, '--', model];
  return readPredict(await command(options, args), units);
}

/**
 * Runs one command and gives its result. Throws ProbeError: the probe's own error, PROBE_CRASHED when it died after it
 * had been seen to run, and what `probeVersion` throws.
 */
async function command(options: CommandOptions, args: readonly string[]): Promise<Fields> {
  await probeVersion(options);
  const { fields, exitError } = await document(options, args);
  if (!fields) throw exitError('during');
  readIdentity(fields.object('probe'), options.accept ?? ['apple']);
  if (fields.text('command') !== args[0]) throw brokenProtocol('the document', `${args[0]}`, fields.text('command'));
  return fields.object('result');
}

interface Outcome {
  /** The document, unless there was none. */
  readonly fields: Fields | undefined;
  exitError(when: 'start' | 'during'): ProbeError;
}

async function document(options: CommandOptions, args: readonly string[]): Promise<Outcome> {
  options.signal?.throwIfAborted();
  const pieces: Buffer[] = [];
  let bytes = 0;
  let reason: ProbeError | undefined;
  const probe = await ProbeProcess.start(options, args, (piece) => {
    bytes += piece.length;
    if (bytes <= DOCUMENT_BYTES) pieces.push(piece);
    else stop(brokenProtocol('the document', `at most ${DOCUMENT_BYTES} bytes`, 'more'));
  });
  const stop = (why: ProbeError): void => {
    reason ??= why;
    probe.kill();
  };
  const patience = options.patience ?? PATIENCE;
  const timer = setTimeout(() => stop(tooSlow(args[0]!, patience)), patience);
  const onAbort = (): void => probe.kill();
  options.signal?.addEventListener('abort', onAbort, { once: true });
  if (options.signal?.aborted) onAbort();
  probe.endInput();
  const exit = await probe.ended;
  clearTimeout(timer);
  options.signal?.removeEventListener('abort', onAbort);
  options.signal?.throwIfAborted();
  if (reason) throw reason;
  const exitError = (when: 'start' | 'during'): ProbeError =>
    when === 'start' ? probe.startError(exit) : probe.crashError(exit, `during ${args[0]}`);
  if (exit.signal !== null || bytes === 0) return { fields: undefined, exitError };
  const fields = readJson(Buffer.concat(pieces), 'the document');
  if (fields.has('error')) throw readError(fields.object('error'));
  if (exit.code !== 0) throw brokenProtocol('the document', 'an error with the exit code', `exit code ${exit.code}`);
  return { fields, exitError };
}

function tooSlow(command: string, ms: number): ProbeError {
  return new ProbeError('PROBE_HUNG', `laya-probe ${command} did not end within ${ms / 1000} s and was killed`, {
    expected: `an end within ${ms / 1000} s`,
    found: 'none',
    hint: 'try again; if it stays so, look at the load of the machine',
  });
}
