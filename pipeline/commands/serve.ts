import type { Device, GraphChoice } from '../../runtime/plan.js';
import { jsonLog, type LogLevel } from '../../runtime/serve/log.js';
import { serve } from '../../runtime/serve/serve.js';
import { openContext, printData } from '../edge.js';
import { UsageError } from '../errors.js';
import type { GlobalOptions } from '../options.js';
import { ownVersion } from '../version.js';

interface ServeCommandOptions extends GlobalOptions {
  readonly model: readonly string[];
  readonly host: string;
  readonly port: number;
  readonly device: Device;
  readonly graph: GraphChoice;
  readonly workers?: number;
  readonly allowRemote?: boolean;
  readonly logLevel: LogLevel;
  readonly checkpoint?: string;
}

/** `serve`: prints the address once it listens, and runs until SIGINT or SIGTERM; requests in progress are finished. */
export async function serveModels(options: ServeCommandOptions): Promise<void> {
  const { model: models, host, port, device, graph, workers, checkpoint, allowRemote = false } = options;
  if (checkpoint !== undefined && (models.length !== 1 || models[0] === 'auto'))
    throw new UsageError('USAGE', '--checkpoint is for one model', { where: '--checkpoint', found: models });
  const context = openContext(options);
  process.stderr.on('error', () => undefined);
  const log = jsonLog(options.logLevel, (line) => void process.stderr.write(line), context.now);
  const apiKey = context.env.LAYA_API_KEY;
  const served = await serve({
    ...{ models, host, port, device, graph, allowRemote, apiKey, log },
    root: context.root,
    version: ownVersion(),
    ...(workers === undefined ? {} : { workers }),
    ...(checkpoint === undefined ? {} : { checkpoint }),
  });
  try {
    await printData(served.url);
    await Promise.race([served.ready(), aborted(context.signal)]);
    await aborted(context.signal);
  } finally {
    // Some requests were cut.
    if (!(await served.stop())) process.exitCode = 1;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
