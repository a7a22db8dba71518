import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { findModel } from '../../registry/models.js';
import { packageRoot } from '../../registry/package-root.js';
import { openContext, parseModelName, printData } from '../edge.js';
import { EnvironmentError } from '../errors.js';
import { cachedGoldens, readGoldens } from '../goldens.js';
import type { GlobalOptions } from '../options.js';
import { runProgram } from '../process.js';
import { checkpointFolder } from '../stages/resolve.js';
import { ensurePython, pipEnvironment } from '../tools/python.js';

interface RecordOptions extends GlobalOptions {
  readonly model?: string;
  readonly checkpoint?: string;
  readonly out?: string;
}

/**
 * `record-goldens`: records a model's references with the upstream package in the locked `reference` environment.
 * The bundled model's go to `goldens/`, others to the cache, unless `--out` says otherwise.
 */
export async function recordGoldens(argument: string | undefined, options: RecordOptions): Promise<void> {
  const model = findModel(parseModelName(argument, options.model));
  const context = openContext(options);
  const own = join(packageRoot(), 'goldens', `${model.name}.json`);
  const out = resolve(options.out ?? (model.bundled ? own : cachedGoldens(model, context.tools)));
  const checkpoint = options.checkpoint ?? (await checkpointFolder(model, context));
  const { python } = await ensurePython('reference', context);
  const script = join(packageRoot(), 'python-convert', 'reference', 'record_goldens.py');
  const about = ['--checkpoint', resolve(checkpoint), '--model', model.name, '--revision', model.revision];
  const lengths = ['--buckets', model.buckets.join(','), '--out', out];
  await mkdir(dirname(out), { recursive: true });
  context.emit({ kind: 'stage_started', stage: 'recording' });
  const run = await runProgram(python, ['-I', '-X', 'utf8', script, ...about, ...lengths], {
    env: pipEnvironment(context),
    cwd: dirname(out),
    signal: context.signal,
  });
  if (run.exitCode !== 0)
    throw new EnvironmentError('TOOL_KILLED', 'the reference could not be recorded', {
      found: run.stderrTail.slice(-800),
    });
  const goldens = await readGoldens(out, model);
  const rows = goldens.cases.reduce((sum, one) => sum + one.rows.length, 0);
  await printData(
    `${goldens.cases.length} cases, ${rows} rows: ${out}\nnext: npm run build-artifacts -- --model ${model.name} --force`,
  );
}
