import { artifactRoot, toolsRoot } from '../registry/paths.js';
import { consoleEmitter } from './console.js';
import { InterruptedError, UsageError } from './errors.js';
import type { Context } from './events.js';
import type { GlobalOptions } from './options.js';

const OFFLINE = new Set(['1', 'ON', 'YES', 'TRUE']);

/** Resolves environment, clock, signals and terminal once into the context that commands run in. */
export function openContext(options: GlobalOptions): Context {
  const env = { ...process.env };
  return Object.freeze({
    env,
    root: artifactRoot(env),
    tools: toolsRoot(env),
    offline: options.offline === true || OFFLINE.has((env.HF_HUB_OFFLINE ?? '').toUpperCase()),
    now: () => new Date(),
    signal: interruptSignal(),
    emit: options.json === true ? () => undefined : consoleEmitter(process.stderr, () => performance.now()),
  });
}

/** Aborts on the first SIGINT or SIGTERM; the second one ends the process at once. */
function interruptSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(name === 'SIGINT' ? 130 : 143);
      controller.abort(new InterruptedError(name));
    });
  return controller.signal;
}

/** Exact buckets from `64,96` or `64 96`: each a plain decimal number of the offered set (fault C01). */
export function parseBuckets(values: readonly string[] | undefined, offered: readonly number[]): number[] {
  if (values === undefined) return [...offered];
  const texts = values.flatMap((value) => value.split(','));
  const buckets = texts.map((text) => offered.find((bucket) => String(bucket) === text.trim()));
  const unknown = texts.filter((_, i) => buckets[i] === undefined);
  if (unknown.length > 0 || texts.length === 0)
    throw new UsageError('USAGE', `--length ${unknown.join(', ')} is not offered`, {
      where: '--length',
      expected: offered,
      found: unknown,
      hint: `choose from: ${offered.join(', ')}`,
    });
  return [...new Set(buckets as number[])].sort((a, b) => a - b);
}

/** The model from an argument or `--model`; exactly one of them, or both the same. */
export function parseModelName(argument: string | undefined, option: string | undefined): string {
  const name = argument ?? option;
  if (name !== undefined && (argument === undefined || option === undefined || argument === option)) return name;
  const message = name === undefined ? 'no model was named' : `two models were named: ${argument} and ${option}`;
  throw new UsageError('USAGE', message, { where: '--model', hint: 'laya-artifacts build laya-tiny' });
}

/** Writes data to stdout and waits until the system has taken it. */
export async function printData(text: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    process.stdout.write(`${text}\n`, (error) => (error ? reject(error) : resolve()));
  });
}
