import { findModel } from '../../registry/models.js';
import { buildDense, type DenseReport } from '../dense/build.js';
import { openContext, parseBuckets, parseModelName, printData } from '../edge.js';
import { buildArtifacts } from '../line.js';
import type { GlobalOptions } from '../options.js';
import type { BucketReport, BuildReport } from '../report.js';
import { bytesText, table } from '../text.js';
import { hereToolchain, type ToolchainOptions } from '../toolchain/here.js';
import { portableToolchain } from '../toolchain/portable.js';

interface BuildOptions extends GlobalOptions, ToolchainOptions {
  readonly model?: string;
  readonly length?: readonly string[];
  readonly checkpoint?: string;
  readonly force?: boolean;
  readonly graph?: 'buckets' | 'any-length' | 'all';
}

/**
 * `build`: exit code 1 when a gate refused something. The any-length graph is built where it is asked for: it serves the
 * cpu alone, and takes the weights once more, in FP32.
 */
export async function build(argument: string | undefined, options: BuildOptions): Promise<void> {
  const model = findModel(parseModelName(argument, options.model));
  const { graph = 'buckets' } = options;
  const context = openContext(options);
  const order = {
    model,
    buckets: parseBuckets(options.length, model.buckets),
    force: options.force === true,
    toolchain: hereToolchain(options, context),
    ...(options.checkpoint === undefined ? {} : { checkpoint: options.checkpoint }),
  };
  const report = graph === 'any-length' ? undefined : await buildArtifacts(order, context);
  const dense =
    graph === 'buckets' ? undefined : await buildDense({ ...order, toolchain: portableToolchain() }, context);
  if (options.json) {
    const document = report === undefined ? dense : dense === undefined ? report : { ...report, any_length: dense };
    await printData(JSON.stringify(document, null, 1));
  } else {
    const parts = [report && reportText(report), dense && denseText(dense)];
    await printData(parts.filter((part) => part !== undefined).join('\n\n'));
  }
  if ([...(report?.rows ?? []), dense].some((row) => row?.outcome === 'rejected')) process.exitCode = 1;
}

function denseText({ model, outcome, path, seconds, rows, prob_max_abs: worst, bytes, code }: DenseReport): string {
  const figures = `${rows ?? '-'} rows, max |dp| ${worst?.toExponential(1) ?? '-'}, ${bytesText(bytes ?? 0)}`;
  const verdict =
    outcome === 'rejected' ? `refused: ${code}` : outcome === 'registered' ? 'registered' : 'there already';
  return `${model}, any length: ${verdict}, ${figures}, ${seconds.toFixed(1)} s\n${path}`;
}

function reportText({ model, rows, seconds }: BuildReport): string {
  const head = ['BUCKET', 'ROWS', 'MAX |DP|', 'PLACEMENT', 'SIZE', 'SECONDS', 'RESULT'];
  const lines = rows.map((row) => [
    `L${row.bucket}`,
    row.rows === undefined ? '-' : String(row.rows),
    row.prob_max_abs === undefined ? '-' : row.prob_max_abs.toFixed(5),
    row.placement ?? '-',
    row.bytes === undefined ? '-' : bytesText(row.bytes),
    row.seconds.toFixed(1),
    row.outcome === 'rejected' ? `refused: ${row.code}` : row.outcome === 'registered' ? 'registered' : 'there already',
  ]);
  const paths = rows.map((row) => `L${row.bucket}  ${row.path}`);
  return [table(head, lines), '', ...paths, '', summary(model, rows, seconds)].join('\n');
}

function summary(model: string, rows: readonly BucketReport[], seconds: number): string {
  const made = rows.filter((row) => row.outcome === 'registered').length;
  const refused = rows.filter((row) => row.outcome === 'rejected').length;
  const verdict =
    made + refused === 0 ? 'nothing to do, all are registered and whole' : `${made} registered, ${refused} refused`;
  const ask = `npx laya-artifacts predict ${model} --context "I was charged twice and I am furious." --questions '["Is the customer angry?"]'`;
  const next = refused > 0 ? 'look at the refused records named above' : ask;
  return `${model}: ${verdict}, ${seconds.toFixed(1)} s\nnext: ${next}`;
}
