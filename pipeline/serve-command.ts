import { type Command, InvalidArgumentError, Option } from 'commander';
import { LOG_LEVELS } from '../runtime/serve/log.js';

/** Adds `serve`. Its module is loaded only when it runs. */
export function addServeCommand(cli: Command, merged: <T extends object>(options: T) => T): void {
  cli
    .command('serve')
    .description('answer requests over HTTP, for clients of POST /v1/systemone')
    .option('--model <names...>', 'models to serve; the first answers by default', ['auto'])
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <number>', 'port, 0 for any free one', wholeNumber(0, 65535), 8642)
    .addOption(new Option('--device <device>', 'where to run').choices(['auto', 'cpu', 'ane', 'gpu']).default('auto'))
    .addOption(
      new Option('--graph <graph>', 'which graphs may answer')
        .choices(['auto', 'buckets', 'any-length'])
        .default('auto'),
    )
    .option(
      '--workers <number>',
      'requests answered at a time (default: one a processor, at most 4)',
      wholeNumber(1, 64),
    )
    .option('--checkpoint <dir>', 'a local checkpoint folder with the pinned weights')
    .option('--allow-remote', 'listen on other addresses than loopback; needs LAYA_API_KEY')
    .addOption(
      new Option('--log-level <level>', 'least level of the log on stderr').choices(LOG_LEVELS).default('info'),
    )
    .addOption(new Option('--offline', 'never use the network'))
    .addHelpText('after', ABOUT_KEYS)
    .action(async (options) => (await import('./commands/serve.js')).serveModels(merged(options)));
}

const ABOUT_KEYS = '\nWith LAYA_API_KEY set, requests need "Authorization: Bearer <key>".';

/** An exact whole number within bounds (fault C01). */
function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^(0|[1-9][0-9]{0,8})$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}
