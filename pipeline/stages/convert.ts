import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ArtifactParityError, StoreError } from '../../registry/errors.js';
import { GRAPH } from '../../registry/models.js';
import { packageRoot } from '../../registry/package-root.js';
import type { Staging } from '../../registry/staging.js';
import type { CheckpointFile } from '../../runtime/checkpoint.js';
import { readRecord } from '../../schemas/door.js';
import { isSystemError, RecordError } from '../../schemas/errors.js';
import type { Conversion, Converted as ConvertedRecord } from '../../schemas/generated/types.js';
import { conversion as validator } from '../../schemas/generated/validators.js';
import { ConversionError, EnvironmentError } from '../errors.js';
import type { Context } from '../events.js';
import { type RunResult, runProgram } from '../process.js';
import { ensurePython } from '../tools/python.js';
import type { Resolved } from './resolve.js';

/** Packages of all buckets, each with its layout check, from one run of the converter. */
export interface Converted {
  readonly resolved: Resolved;
  readonly staging: Staging;
  /** Absolute path of each bucket's `.mlpackage`. */
  readonly packages: ReadonlyMap<number, string>;
  readonly record: ConvertedRecord;
  /** SHA-256 over the converter's own files. */
  readonly codeSha256: string;
}

/** Largest |dlogit| of the FP32 graph against the reference on the exact-length row. */
const LAYOUT_TOLERANCE = 1e-3;

/** Stage 2: the checkpoint to one package a bucket, in the pinned Python environment. */
export async function convert(
  { resolved, staging }: { resolved: Resolved; staging: Staging },
  context: Context,
): Promise<Converted> {
  const environment = await ensurePython('convert', context);
  const out = join(staging.path, 'packages');
  const [request, result] = [join(staging.path, 'request.json'), join(staging.path, 'result.json')];
  await mkdir(out);
  await writeFile(request, JSON.stringify(requestOf(resolved, out, environment.lock)));
  const script = join(packageRoot(), 'python-convert', 'convert.py');
  const run = await runProgram(environment.python, ['-I', '-X', 'utf8', script, request, result], {
    env: converterEnvironment(context, staging.temp),
    cwd: staging.path,
    signal: context.signal,
    onLine: (line) => reportProgress(line, resolved, context),
  });
  const record = await readResult(result, run);
  const packages = new Map<number, string>();
  for (const bucket of resolved.order.buckets) packages.set(bucket, await checkedPackage(record, bucket, out));
  return { resolved, staging, packages, record, codeSha256: await converterCodeHash() };
}

function requestOf({ order, checkpoint, tokenizer, layoutRows }: Resolved, out: string, lock: string) {
  const rows = [...layoutRows].map(([bucket, { row, logits }]) => [
    String(bucket),
    { ...row, pad_id: tokenizer.pad.id, logits },
  ]);
  const file = (name: CheckpointFile): string => checkpoint.files.get(name)!;
  return {
    protocol: 1,
    checkpoint: {
      weights: file('model.safetensors'),
      encoder_config: file('encoder/config.json'),
      agent_config: file('rl_agent_config.json'),
    },
    out,
    buckets: order.buckets,
    lock,
    layout_rows: Object.fromEntries(rows),
    max_options: GRAPH.maxOptions,
  };
}

/** Nothing of the caller's environment reaches the converter but where programs and libraries are (fault B20). */
function converterEnvironment({ env }: Context, temp: string): Record<string, string | undefined> {
  const kept = Object.entries(env).filter(([name]) => name.startsWith('OPENBLAS_'));
  return { ...Object.fromEntries(kept), PATH: env.PATH, HOME: temp, TMPDIR: temp, LC_ALL: 'C.UTF-8' };
}

function reportProgress(line: string, { order }: Resolved, { emit }: Context): void {
  const length = /^@progress .*"length": ?(\d+)/.exec(line)?.[1];
  if (length === undefined) return;
  const done = order.buckets.indexOf(Number(length)) + 1;
  emit({ kind: 'progress', label: `converted L${length}`, done, total: order.buckets.length });
}

async function readResult(path: string, run: RunResult): Promise<ConvertedRecord> {
  const record = await readRecord<Conversion>(path, validator).catch((error: unknown) => {
    if (isSystemError(error, 'ENOENT')) throw crashed(run);
    if (!(error instanceof RecordError)) throw error;
    throw new ConversionError('CONVERTER_PROTOCOL', `the converter's result is not valid: ${error.message}`, {
      where: path,
      cause: error,
    });
  });
  if (record.ok && run.exitCode === 0) return record;
  if (record.ok) throw crashed(run);
  const { code, message, where, expected, found, hint } = record.error;
  const facts = { ...(where ? { where } : {}), expected, found, ...(typeof hint === 'string' ? { hint } : {}) };
  if (code === 'LAYOUT_CHECK') throw new ArtifactParityError('LAYOUT_CHECK', message, facts);
  if (code === 'DISK_SPACE') throw new StoreError('DISK_FULL', message, facts);
  throw new ConversionError(code, message, facts);
}

function crashed(run: RunResult): Error {
  const found = run.stderrTail.slice(-600);
  if (run.killedBy === null && run.exitCode !== null && run.exitCode !== 126 && run.exitCode !== 127)
    return new ConversionError('CONVERTER_CRASHED', `the converter ended with exit code ${run.exitCode}`, { found });
  return new EnvironmentError('TOOL_KILLED', `the converter did not run (${run.killedBy ?? `exit ${run.exitCode}`})`, {
    found,
    hint: 'is there enough memory? is the Python environment whole? remove it and run the command again',
  });
}

/** The converter's own verdict is not taken on trust: its figure, its file. */
async function checkedPackage(record: ConvertedRecord, bucket: number, out: string): Promise<string> {
  const entry = record.buckets[String(bucket)];
  if (!entry) throw new ConversionError('CONVERTER_PROTOCOL', `the converter's result has no bucket ${bucket}`);
  const measured = entry.layout_check_max_abs_logit_fp32;
  if (measured === null || !(measured < LAYOUT_TOLERANCE))
    throw new ArtifactParityError('LAYOUT_CHECK', `L${bucket}: the FP32 graph is not the reference's`, {
      expected: `max |dlogit| below ${LAYOUT_TOLERANCE}`,
      found: measured,
    });
  const path = join(out, entry.package);
  const size = await stat(join(path, 'Data', 'com.apple.CoreML', 'model.mlmodel')).then(
    (found) => found.size,
    () => 0,
  );
  if (size > 0) return path;
  throw new ConversionError('CONVERTER_PROTOCOL', `the package of L${bucket} has no model`, { where: path });
}

/** SHA-256 over `<sha256>  <path>` lines of every file of the converter, sorted by path. */
async function converterCodeHash(): Promise<string> {
  const folder = join(packageRoot(), 'python-convert');
  const modules = (await readdir(join(folder, 'laya_convert'))).filter((name) => name.endsWith('.py')).sort();
  const hash = createHash('sha256');
  for (const path of ['convert.py', ...modules.map((name) => `laya_convert/${name}`)]) {
    const digest = createHash('sha256')
      .update(await readFile(join(folder, path)))
      .digest('hex');
    hash.update(`${digest}  ${path}\n`);
  }
  return hash.digest('hex');
}
