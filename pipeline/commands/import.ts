import { LayaError } from '../../schemas/errors.js';
import { openContext, printData } from '../edge.js';
import { InterruptedError, UsageError } from '../errors.js';
import { type ImportReport, importArchive } from '../import.js';
import type { GlobalOptions } from '../options.js';
import { bytesText, table } from '../text.js';
import { readyToolchain, type ToolchainOptions } from '../toolchain/here.js';

interface ImportOptions extends GlobalOptions, ToolchainOptions {
  readonly revalidate?: boolean;
  readonly force?: boolean;
  readonly expectSha256?: string;
  readonly checkpoint?: string;
}

/** An archive that could not be imported. */
interface Failure {
  readonly file: string;
  readonly outcome: 'failed';
  readonly error: LayaError;
}

/** `import`: each archive for itself; exit code 1 when one was refused. */
export async function importArchives(files: readonly string[], options: ImportOptions): Promise<void> {
  const sha256 = options.expectSha256?.toLowerCase();
  if (sha256 !== undefined && (files.length !== 1 || !/^[0-9a-f]{64}$/.test(sha256)))
    throw new UsageError('USAGE', '--expect-sha256 takes 64 hex digits and goes with one file', {
      where: '--expect-sha256',
      found: options.expectSha256,
    });
  const context = openContext(options);
  const toolchain = await readyToolchain(options, context);
  const rows: (ImportReport | Failure)[] = [];
  for (const file of files) {
    const order = {
      file,
      force: options.force === true,
      revalidate: options.revalidate === true,
      toolchain,
      ...(sha256 === undefined ? {} : { sha256 }),
      ...(options.checkpoint === undefined ? {} : { checkpoint: options.checkpoint }),
    };
    rows.push(
      await importArchive(order, context).catch((error: unknown): Failure => {
        if (!(error instanceof LayaError) || error instanceof InterruptedError || files.length === 1) throw error;
        return { file, outcome: 'failed', error };
      }),
    );
  }
  await printData(options.json ? JSON.stringify(rows, null, 1) : reportText(rows));
  if (rows.some(({ outcome }) => outcome === 'failed' || outcome === 'rejected')) process.exitCode = 1;
}

function reportText(rows: readonly (ImportReport | Failure)[]): string {
  const lines = rows.map((row) =>
    row.outcome === 'failed'
      ? [row.file, '-', '-', '-', `refused: ${row.error.code}`]
      : [row.file, `${row.model} L${row.bucket}`, bytesText(row.bytes), row.seconds.toFixed(1), resultText(row)],
  );
  const notes = rows.map((row) =>
    row.outcome === 'failed'
      ? `${row.file}: ${row.error.message}`
      : `${row.path}${row.reason ? `: ${row.reason}` : ''}`,
  );
  return [table(['FILE', 'ARTIFACT', 'SIZE', 'SECONDS', 'RESULT'], lines), '', ...notes].join('\n');
}

function resultText({ outcome, code }: ImportReport): string {
  if (outcome === 'rejected') return `refused: ${code}`;
  return outcome === 'registered' ? 'registered' : 'there already';
}
